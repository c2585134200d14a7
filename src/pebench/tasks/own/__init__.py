"""Tasks on data of a user's own, by the path of a file or folder. No torch here.

The package loads none of them before it is asked for: what reads their files takes a while to import.
"""

from collections.abc import Callable
from importlib import import_module

from pebench.tasks.base import Task
from pebench.tasks.own.places import take_remarks
from pebench.tasks.own.task import OwnTask

MODULES = {"texts": "labelled_texts", "images": "image_folder", "corpus": "running_text"}
"""Module of the function of keyword options that makes each of these tasks, by the task's name."""


def maker(name: str) -> Callable[..., Task]:
    """Return the function of keyword options that makes one of these tasks."""
    made: Callable[..., Task] = getattr(import_module(f"pebench.tasks.own.{MODULES[name]}"), name)
    return made


__all__ = ["MODULES", "OwnTask", "maker", "take_remarks"]
