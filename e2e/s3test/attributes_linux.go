package s3test

import (
	"path/filepath"
	"syscall"
)

// hasAttributes says whether files in a folder can have the extended attributes
// that the server keeps e-tags in.
func hasAttributes(dir string) bool {
	return syscall.Setxattr(filepath.Clean(dir), "user.lancefleet.probe", []byte("1"), 0) == nil
}
