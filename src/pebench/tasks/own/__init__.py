"""Tasks on data of a user's own, by the path of a file or folder. No torch here."""

from collections.abc import Callable

from pebench.tasks.base import Task
from pebench.tasks.own.guess import task_of_path
from pebench.tasks.own.image_folder import images
from pebench.tasks.own.labelled_texts import texts
from pebench.tasks.own.places import take_remarks
from pebench.tasks.own.running_text import corpus
from pebench.tasks.own.task import OwnTask

MAKERS: dict[str, Callable[..., Task]] = {"texts": texts, "images": images, "corpus": corpus}
"""Functions of keyword options that return such a task, by the task's name."""

__all__ = ["MAKERS", "OwnTask", "take_remarks", "task_of_path"]
