"""Where a study is kept: a journal file, SQLite or PostgreSQL."""

import os
import time
from collections.abc import Callable
from pathlib import Path

import optuna
import sqlalchemy
from optuna.storages import BaseStorage, JournalStorage, RDBStorage
from optuna.storages.journal import JournalFileBackend, JournalFileSymlinkLock
from sqlalchemy.exc import ArgumentError, SQLAlchemyError

from mha_lab.config import first_line
from mha_lab.errors import UserError

JOURNAL = "study.journal"
FAULTS = (SQLAlchemyError, optuna.exceptions.StorageInternalError, OSError)
"""What a storage raises when it is gone."""

_ATTEMPTS = 5
_COLLISION = ("already exists", "duplicate", "unique", "locked")
_DRIVERS = {"sqlite": "sqlite", "postgresql": "postgresql+psycopg"}


def open_storage(url: str | None, folder: Path) -> BaseStorage:
    """Open a storage, and make it where there is none.

    Args:
        url: ``sqlite:///FILE`` or ``postgresql://USER:PASSWORD@HOST/DATABASE``; None is a journal
            file in the sweep's folder.
        folder: of the sweep; it exists.

    Raises:
        UserError: the storage cannot be reached or read.
    """
    if url is None:
        return _open_journal(folder / JOURNAL)
    try:
        parts = sqlalchemy.make_url(url)
    except ArgumentError:
        parts = None
    if parts is None or parts.get_backend_name() not in _DRIVERS:
        raise UserError(
            f"sweep.storage={url} is not a storage: write sqlite:///FILE or "
            "postgresql://USER:PASSWORD@HOST/DATABASE, or leave it out for a journal file"
        )
    shown = parts.render_as_string(hide_password=True)
    parts = parts.set(drivername=_DRIVERS[parts.get_backend_name()])
    try:
        return optuna.storages.get_storage(_open_database(parts))
    except ImportError as error:
        raise UserError(
            f"sweep.storage={shown} needs a driver: pip install 'mha_lab[postgres]' "
            f"({first_line(error)})"
        ) from error
    except FAULTS as error:
        raise UserError(f"cannot reach sweep.storage={shown}: {_reason(error)}") from error


def _open_journal(file: Path) -> BaseStorage:
    # Absolute, because the lock is a link to this path.
    path = str(file.resolve())
    try:
        lock = JournalFileSymlinkLock(path)
        _drop_torn_line(Path(path), lock)
        return JournalStorage(JournalFileBackend(path, lock_obj=lock))
    except Exception as error:  # replaying a damaged journal can fail anywhere
        raise UserError(f"cannot read the journal {str(file)!r}: {first_line(error)}") from error


def _drop_torn_line(file: Path, lock: JournalFileSymlinkLock) -> None:
    """Cut off an entry that a crash left half written; it would make all others unreadable."""
    if not file.exists():
        return
    lock.acquire()
    try:
        content = file.read_bytes()
        whole = content.rfind(b"\n") + 1
        if whole < len(content):
            os.truncate(file, whole)
    finally:
        lock.release()


def _open_database(url: sqlalchemy.URL) -> RDBStorage:
    is_sqlite = url.get_backend_name() == "sqlite"
    # Python's sqlite3 reads outside of transactions unless told not to begin any itself.
    connect = {"timeout": 60, "isolation_level": None} if is_sqlite else {"connect_timeout": 10}
    address = url.render_as_string(hide_password=False)
    storage = _patiently(
        lambda: RDBStorage(address, engine_kwargs={"connect_args": connect, "pool_pre_ping": True})
    )
    if is_sqlite:
        # Reading and then writing is one step, so that two processes never claim the same trial.
        sqlalchemy.event.listen(
            storage.engine,
            "begin",
            lambda connection: connection.exec_driver_sql("BEGIN IMMEDIATE"),
        )
    return storage


def _patiently(make: Callable[[], RDBStorage]) -> RDBStorage:
    """Try again: two processes that create the tables at once disturb each other."""
    for attempt in range(1, _ATTEMPTS):
        try:
            return make()
        except SQLAlchemyError as error:
            if not any(word in str(error).lower() for word in _COLLISION):
                raise
            time.sleep(0.2 * attempt)
    return make()


def _reason(error: BaseException) -> str:
    """The first line of a database's error, without the driver's class name in front."""
    return first_line(error).removeprefix("(").replace(")", ":", 1)
