//! Where bytes come from: files and directories, read and watched.
