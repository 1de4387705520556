package ps

// syncDir does nothing: Windows has no sync of directories, and its file systems keep a
// journal of renames.
func syncDir(string) error { return nil }
