"""Triage: the questions, one module each; every one returns rows of the views.

Pipeline: views -> store -> [triage] -> cli
"""
