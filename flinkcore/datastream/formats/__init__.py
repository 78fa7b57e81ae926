"""PyFlink's ``pyflink.datastream.formats`` names: rows in files."""
