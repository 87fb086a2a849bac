"""Opening a journal after a restart or a crash: restore, salvage damaged files, detect lost commits."""
