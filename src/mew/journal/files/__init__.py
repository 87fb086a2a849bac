"""The files of a journal on disk: the database, its locator index, snapshots, high-water marks, and the folder."""
