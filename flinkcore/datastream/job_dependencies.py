"""The methods of an environment that provide the functions of jobs with modules, packages and files."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Sequence
from os import PathLike

from flinkcore.common.configuration import Configuration
from flinkcore.common.settings import flink_settings as settings
from flinkcore.common.settings.flink_settings import Setting, check_cached_files
from flinkcore.common.settings.setting_types import as_text
from flinkcore.datastream.graph.pipeline_executor import PipelineExecutor


class JobDependencies(ABC):
    """Environment as the modules, packages and files that the functions of its jobs need."""

    _configuration: Configuration

    @property
    @abstractmethod
    def executor(self) -> PipelineExecutor:
        """The executor of this environment's jobs."""

    def add_python_file(self, file_path: str | PathLike[str]) -> None:
        """Make a module importable for the functions of jobs: here, or on the executors of the Spark session.

        Parameters
        ----------
        file_path : path
            A module (``.py``), a folder with modules and packages, or an archive of them (``.zip``, ``.egg``,
            ``.whl``); relative to the working directory. Its modules take precedence over others of the same name.

        Raises
        ------
        SourceError
            If there is no such file or folder, or it is none of these.

        Notes
        -----
        Follows ``pyflink.datastream.StreamExecutionEnvironment.add_python_file``. Deliberate difference: for a single
        module, jobs that run in this process can import everything in its folder.
        """
        from flinkcore.datastream.graph.python_dependencies import python_file

        self.executor.add_python_file(python_file(file_path))

    def add_python_archive(self, archive_path: str | PathLike[str], target_dir: str | None = None) -> None:
        """Provide the functions of jobs with the files of an archive, in a folder of their working directory.

        Parameters
        ----------
        archive_path : path
            A zip file (``.zip``, ``.jar``, ``.egg``, ``.whl``) or a tar file (``.tar.gz``, ``.tgz``, ``.tar``),
            relative to the working directory of the program.
        target_dir : str, optional
            The folder, relative to the working directory of functions: ``open("target_dir/data.txt")``. By default the
            name of the archive's file. It takes the place of an archive that had this folder before.

        Raises
        ------
        ConfigurationError
            If the folder is not below the working directory, or within that of another archive.
        SourceError
            If there is no such archive, or it is damaged.

        Notes
        -----
        Follows ``pyflink.datastream.StreamExecutionEnvironment.add_python_archive``. As there, functions of jobs with
        archives have a working directory of their own, which has nothing but these folders. A job in this process
        enters it whenever it runs, and so runs in one thread. Deliberate difference: archives with one folder
        are not mixed.
        """
        from flinkcore.datastream.graph.python_dependencies import python_archive

        self.executor.add_python_archive(python_archive(archive_path, target_dir))

    def set_python_requirements(
        self,
        requirements_file_path: str | PathLike[str],
        requirements_cache_dir: str | PathLike[str] | None = None,
    ) -> None:
        """Install packages for the functions of jobs, apart from those of this interpreter.

        Parameters
        ----------
        requirements_file_path : path
            A requirements file of pip.
        requirements_cache_dir : path, optional
            A folder with all packages, as ``pip download`` makes it; by default they come from pip's index.

        Raises
        ------
        ConfigurationError
            If pip cannot install them.
        SourceError
            If there is no such file or folder.

        Notes
        -----
        Follows ``pyflink.datastream.StreamExecutionEnvironment.set_python_requirements``. Deliberate difference: they
        are installed at once, by pip of this interpreter and for its platform, and executors of Spark are sent them.
        """
        from flinkcore.datastream.graph.python_dependencies import installed_requirements

        self.executor.add_python_file(installed_requirements(requirements_file_path, requirements_cache_dir))

    def set_python_executable(self, python_exec: str) -> None:
        """Check that an interpreter is the one that runs the functions of jobs.

        Parameters
        ----------
        python_exec : str
            A path, or the name of a program on the ``PATH``.

        Raises
        ------
        ConfigurationError
            If functions are run by another one, which is chosen where the program or the Spark session is started.

        Notes
        -----
        Follows ``pyflink.datastream.StreamExecutionEnvironment.set_python_executable``, which chooses it.
        """
        self.executor.check_python_executable(python_exec)

    def add_jars(self, *jars_path: str) -> None:
        """Accept archives of Java, which have no meaning here: there is no JVM.

        A connector or format that flinkcore lacks is refused where the program imports it.
        """
        self._append(settings.JARS, jars_path)

    def add_classpaths(self, *classpaths: str) -> None:
        """Accept places of Java's classes, as :meth:`add_jars` does."""
        self._append(settings.CLASSPATHS, classpaths)

    def _append(self, setting: Setting[list[str]], values: Sequence[str]) -> None:
        self._configuration.set(setting, [*(self._configuration.get(setting) or []), *values])

    def register_cached_file(
        self, file_path: str | PathLike[str], name: str, executable: bool = False
    ) -> None:
        """Register a file under a name, which functions of Python cannot ask for, in PyFlink neither.

        Functions open files by their paths, and on Spark those of :meth:`add_python_archive`.

        Parameters
        ----------
        file_path : path
            Or a URI.
        name : str
        executable : bool

        Raises
        ------
        ConfigurationError
            If the name is taken, or is not a text.
        SourceError
            If it is a local path, and there is no such file.
        """
        entry = {"name": name, "path": os.fspath(file_path), "executable": executable}
        self._add_cached_files([as_text(entry)])

    def _add_cached_files(self, entries: Sequence[str]) -> None:
        cached = [*self._configuration.get(settings.CACHED_FILES), *entries]
        check_cached_files(cached)
        self._configuration.set(settings.CACHED_FILES, cached)
