"""Builds the wheel: the library, the program and its demo are made by make and put into the package."""
import os
import shutil
import subprocess

from setuptools import setup
from setuptools.command.build_py import build_py
from setuptools.dist import Distribution

ROOT = os.path.dirname(os.path.abspath(__file__))


class BuildWithLibrary(build_py):
    def run(self):
        super().run()
        subprocess.run(["make", "-s", "all", "build/release/examples/digits"], cwd=ROOT, check=True)
        package = os.path.join(self.build_lib, "rill")
        demo = os.path.join(package, "share", "rill", "demo")
        os.makedirs(os.path.join(package, "bin"), exist_ok=True)
        os.makedirs(demo, exist_ok=True)
        shutil.copy2(os.path.join(ROOT, "build", "release", "librill.so"), os.path.join(package, "librill.so"))
        shutil.copy2(os.path.join(ROOT, "build", "release", "rill"), os.path.join(package, "bin", "rill"))
        shutil.copy2(os.path.join(ROOT, "build", "release", "examples", "digits"), os.path.join(demo, "digits"))
        shutil.copy2(os.path.join(ROOT, "data", "digits.csv.gz"), os.path.join(demo, "digits.csv.gz"))


class WithMachineCode(Distribution):
    def has_ext_modules(self):
        return True


setup(package_dir={"": "python"}, packages=["rill"], cmdclass={"build_py": BuildWithLibrary}, distclass=WithMachineCode)
