"""Tasks on data of a user's own, by the path of a file or folder. No torch here."""

from pebench.tasks.own.guess import task_of_path
from pebench.tasks.own.places import take_remarks
from pebench.tasks.own.task import OwnTask
from pebench.tasks.own.texts import texts

MAKERS = {"texts": texts}
"""Functions of keyword options that return such a task, by the task's name."""

__all__ = ["MAKERS", "OwnTask", "take_remarks", "task_of_path"]
