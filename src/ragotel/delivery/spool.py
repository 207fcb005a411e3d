"""Spool: messages that the receiver could not take, in files that outlive the process.

Pipeline: courier -> [spool] -> replay -> receiver

Each process writes into a folder of its own and holds a lock on it while it lives, so a folder that
can be locked belongs to nobody any more: whoever locks it first sends what it holds. The lock is
the kernel's and ends with the process, however that ends. Used by the worker's thread alone.
"""

from __future__ import annotations

import logging
import os
import re
import secrets
import shutil
import time
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from ragotel.delivery.frames import Frame, Meta, mark_done, read_body, scan, write_frame
from ragotel.delivery.ledger import SPOOL_DAMAGED, SPOOL_FAILED, SPOOL_FULL, Ledger

try:
    import fcntl
except ImportError:  # Windows has no such locks.
    fcntl = None  # type: ignore[assignment]

log = logging.getLogger("ragotel")

_SEGMENT_BYTES = 8 * 1024 * 1024
_SYNC_EVERY_S = 1.0
_LOCK = "lock"
_SUFFIX = ".spool"
_UNBORN = ".new-"
_UNBORN_FOR_S = 3600.0
_NAME = re.compile(r"\d+-[0-9a-f]{8}")
"""Of a folder of ours: whatever else lies beside it is somebody else's, a `lock` in it too."""
_held: set[tuple[int, str]] = set()
"""Folders that this process holds, with its id: the kernel's locks do not tell threads apart."""


@dataclass
class _Segment:
    """One file; its frames leave from the front."""

    path: Path
    descriptor: int
    is_own: bool
    frames: deque[Frame] = field(default_factory=deque)
    size_bytes: int = 0


@dataclass(frozen=True)
class Stored:
    """A message on the disk."""

    segment: _Segment
    frame: Frame
    body: bytes

    @property
    def meta(self) -> Meta:
        return self.frame.meta

    @property
    def is_own(self) -> bool:
        """Whether this process put it there, not one that has ended."""
        return self.segment.is_own


class Spool:
    """First in, first out: the messages of ended processes, then this one's own."""

    def __init__(self, folder: str, max_bytes: int, ledger: Ledger) -> None:
        self._root = Path(folder)
        self._max_bytes = max_bytes
        self._ledger = ledger
        self._segments: deque[_Segment] = deque()
        self._writing: _Segment | None = None
        self._home: Path | None = None
        self._locks: dict[Path, int] = {}
        self._count = 0
        self._synced_at = 0.0
        self._complaint = ""

    @staticmethod
    def is_possible() -> bool:
        """Whether this system has the locks that a spool needs."""
        return fcntl is not None

    def has_messages(self) -> bool:
        return bool(self._segments)

    def has_own_messages(self) -> bool:
        return any(segment.is_own for segment in self._segments)

    def append(self, body: bytes, meta: Meta, force: bool = False) -> str:
        """Put a message at the end; where that fails, give the cause and change nothing.

        *force* ignores the limit: for the few bytes that tell of a loss.
        """
        try:
            self._rescue()
            if not force and self.used_bytes() + len(body) > self._max_bytes:
                return self._refuse(SPOOL_FULL, f"it may hold {self._max_bytes} bytes")
            segment = self._open_segment()
            frame = write_frame(segment.descriptor, segment.size_bytes, meta, body)
            segment.size_bytes += frame.size_bytes
            segment.frames.append(frame)
            self._sync(segment)
        except OSError as error:
            return self._refuse(SPOOL_FAILED, str(error))
        self._complaint = ""
        return ""

    def _refuse(self, cause: str, why: str) -> str:
        if self._complaint != cause:
            log.warning("ragotel: the spool %s takes nothing more: %s", self._root, why)
        self._complaint = cause
        self._close_if_empty()
        return cause

    def used_bytes(self) -> int:
        """Count what all processes hold in this spool."""
        return sum(
            _size(file)
            for folder in self._folders()
            for file in _listed(folder)
            if file.suffix == _SUFFIX
        )

    def _open_segment(self) -> _Segment:
        if self._writing is not None and self._writing.size_bytes < _SEGMENT_BYTES:
            return self._writing
        if self._home is not None and not (self._home / _LOCK).exists():
            self._forget(self._home)
        home = self._home or self._make_home()
        self._count += 1
        path = home / f"{self._count:08d}{_SUFFIX}"
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        if self._writing is not None:
            with suppress(OSError):
                os.fsync(self._writing.descriptor)
        self._writing = _Segment(path, descriptor, is_own=True)
        self._segments.append(self._writing)
        return self._writing

    def _make_home(self) -> Path:
        """Make this process's folder: locked before it gets the name that others look for."""
        self._root.mkdir(mode=0o700, parents=True, exist_ok=True)
        name = f"{os.getpid()}-{secrets.token_hex(4)}"
        unborn, home = self._root / f"{_UNBORN}{name}", self._root / name
        unborn.mkdir(mode=0o700)
        _held.add((os.getpid(), str(home)))
        try:
            descriptor = os.open(unborn / _LOCK, os.O_RDWR | os.O_CREAT, 0o600)
            fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            unborn.rename(home)
        except OSError:
            _held.discard((os.getpid(), str(home)))
            shutil.rmtree(unborn, ignore_errors=True)
            raise
        self._locks[home] = descriptor
        self._home = home
        return home

    def _rescue(self) -> None:
        """Write again what somebody deleted under our hands: an open file has it still."""
        for gone in [s for s in self._segments if s.frames and not os.fstat(s.descriptor).st_nlink]:
            log.warning("ragotel: %s was deleted while messages waited in it", gone.path)
            if gone is self._writing:
                self._writing = None
            segment = self._open_segment()
            while gone.frames:
                body = read_body(gone.descriptor, gone.frames[0])
                if body is not None:
                    meta = gone.frames[0].meta
                    frame = write_frame(segment.descriptor, segment.size_bytes, meta, body)
                    segment.size_bytes += frame.size_bytes
                    segment.frames.append(frame)
                gone.frames.popleft()
        self._close_if_empty()

    def _sync(self, segment: _Segment) -> None:
        """Have the disk itself keep it, at most once a second: the kernel alone survives a kill."""
        now = time.monotonic()
        if now - self._synced_at >= _SYNC_EVERY_S:
            self._synced_at = now
            os.fsync(segment.descriptor)

    def following(self, first: Stored, place: int) -> Stored | None:
        """Read the message *place* after *first* in its file; None: there is no whole one."""
        if place >= len(first.segment.frames):
            return None
        frame = first.segment.frames[place]
        body = None
        with suppress(OSError):
            body = read_body(first.segment.descriptor, frame) if frame.is_whole else None
        return None if body is None else Stored(first.segment, frame, body)

    def oldest(self) -> Stored | None:
        """Read the message to be sent next; what is damaged is counted as lost on the way."""
        while self._segments:
            segment = self._segments[0]
            while segment.frames:
                frame = segment.frames[0]
                body = None
                with suppress(OSError):
                    body = read_body(segment.descriptor, frame) if frame.is_whole else None
                if body is not None:
                    return Stored(segment, frame, body)
                self._ledger.give_back(dict(frame.meta.losses))
                self._ledger.lose(SPOOL_DAMAGED, frame.meta.spans, frame.meta.requests)
                self._drop_first(segment)
            self._close_if_empty()
        return None

    def remove(self, stored: Stored) -> None:
        """Forget the oldest message: it has arrived, or is counted as lost."""
        self._drop_first(stored.segment)
        self._close_if_empty()

    def _drop_first(self, segment: _Segment) -> None:
        with suppress(OSError):
            mark_done(segment.descriptor, segment.frames[0])
        segment.frames.popleft()

    def _close_if_empty(self) -> None:
        """Delete files without a message that waits, and the folders that they leave empty."""
        for segment in [segment for segment in self._segments if not segment.frames]:
            self._segments.remove(segment)
            if segment is self._writing:
                self._writing = None
            with suppress(OSError):
                segment.path.unlink()
            os.close(segment.descriptor)
            folder = segment.path.parent
            if folder != self._home and all(s.path.parent != folder for s in self._segments):
                self._leave(folder)

    def adopt(self) -> None:
        """Take over what processes that have ended left behind; never raises."""
        try:
            for folder in self._folders():
                self._adopt(folder)
            self._sweep()
        except OSError as error:
            log.warning("ragotel cannot look into its spool %s: %s", self._root, error)

    def _folders(self) -> list[Path]:
        return sorted(
            (f for f in _listed(self._root) if _NAME.fullmatch(f.name) and f.is_dir()),
            key=_age,
        )

    def _adopt(self, folder: Path) -> None:
        key = os.getpid(), str(folder)
        if key in _held:
            return
        _held.add(key)
        try:
            descriptor = os.open(folder / _LOCK, os.O_RDWR)
        except OSError:
            _held.discard(key)
            return
        try:
            fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(descriptor)
            _held.discard(key)
            return
        self._locks[folder] = descriptor
        segments = [_read_segment(path) for path in sorted(folder.glob(f"*{_SUFFIX}"))]
        waiting = sum(len(segment.frames) for segment in segments)
        if waiting:
            log.info("ragotel found %d messages of an ended process in %s", waiting, folder)
        # Older than anything of this process's own.
        own = [segment for segment in self._segments if segment.is_own]
        others = [segment for segment in self._segments if not segment.is_own]
        self._segments = deque([*others, *segments, *own])
        if not segments:
            self._leave(folder)
        self._close_if_empty()

    def _leave(self, folder: Path) -> None:
        """Delete a folder that holds nothing more, then let go of its lock."""
        with suppress(OSError):
            (folder / _LOCK).unlink()
            folder.rmdir()
        self._forget(folder)

    def _forget(self, folder: Path) -> None:
        """Let go of a folder's lock, wherever the folder is."""
        if folder == self._home:
            self._home = None
        descriptor = self._locks.pop(folder, None)
        if descriptor is not None:
            os.close(descriptor)
        _held.discard((os.getpid(), str(folder)))

    def _sweep(self) -> None:
        """Delete what processes left that died while they made their folder."""
        for folder in _listed(self._root):
            is_unborn = _NAME.fullmatch(folder.name.removeprefix(_UNBORN)) is not None
            if (
                folder.name.startswith(_UNBORN)
                and is_unborn
                and time.time() - _age(folder) > _UNBORN_FOR_S
            ):
                shutil.rmtree(folder, ignore_errors=True)

    def close(self) -> None:
        """Let the disk keep what is left, and let others take it."""
        with suppress(OSError):
            self._rescue()
        self._close_if_empty()
        for segment in self._segments:
            with suppress(OSError):
                os.fsync(segment.descriptor)
                os.close(segment.descriptor)
        self._segments.clear()
        self._writing = None
        home, self._home = self._home, None
        for folder, descriptor in list(self._locks.items()):
            if folder == home and not list(folder.glob(f"*{_SUFFIX}")):
                self._leave(folder)
                continue
            os.close(descriptor)
            del self._locks[folder]
            _held.discard((os.getpid(), str(folder)))


def holds_messages(folder: str) -> bool:
    """Tell without any lock whether some process, perhaps an ended one, left a folder here."""
    return any(_NAME.fullmatch(found.name) for found in _listed(Path(folder)))


def _listed(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except OSError:
        return []


def _size(file: Path) -> int:
    try:
        return file.stat().st_size
    except OSError:
        # Another process has just sent it.
        return 0


def _age(folder: Path) -> float:
    try:
        return folder.stat().st_mtime
    except OSError:
        return 0.0


def _read_segment(path: Path) -> _Segment:
    descriptor = os.open(path, os.O_RDWR)
    segment = _Segment(path, descriptor, is_own=False)
    segment.frames.extend(scan(descriptor))
    segment.size_bytes = os.fstat(descriptor).st_size
    return segment
