"""Delivery: from finished requests to the receiver, bounded in memory, every loss counted.

Pipeline: recorder -> [delivery] -> OTLP
"""

from ragotel.delivery.delivery import Delivery
from ragotel.delivery.ledger import Counters, LossCallback, Tally

__all__ = ["Counters", "Delivery", "LossCallback", "Tally"]
