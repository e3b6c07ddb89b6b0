"""Judges of the lessons' exercises, which say what a wrong answer points to.

A module per lesson has a function per exercise, ``exercise_1(answer)`` and so on, that returns if
the answer is right and raises :class:`~gnnlab.exercises.judging.Wrong` otherwise. Judges make
their own cases: they depend on nothing that a notebook has defined. Their words are in ``texts/``,
in three languages.
"""

from gnnlab.exercises.lesson import Lesson, Verdict

__all__ = ["Lesson", "Verdict"]
