"""What every process shares at its edge: strict parsing, errors, deadlines, PCM, health, drain, key check.

Imports nothing else of ours. Every other package may import it.
"""
