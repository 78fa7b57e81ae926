from Cython.Build import cythonize
from setuptools import Extension, setup

# Cython finds flinkcore's .pxd files where flinkcore is installed; nothing of it is linked.
setup(ext_modules=cythonize([Extension("inactivity", ["inactivity.pyx"], extra_compile_args=["-O3"])]))
