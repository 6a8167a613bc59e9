//go:build !linux

package s3test

func hasAttributes(string) bool { return false }
