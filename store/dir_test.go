package store_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"lancefleet/store"
)

func TestADataDirectoryHasOneForm(t *testing.T) {
	here, err := os.Getwd()
	require.NoError(t, err)
	for given, want := range map[string]string{
		"/data/":                         "/data",
		"/data//x/../y":                  "/data/y",
		"./data":                         filepath.Join(here, "data"),
		" data ":                         filepath.Join(here, "data"),
		"file:///data/a%20b/":            "/data/a b",
		"FILE://localhost/data":          "/data",
		"s3://bucket":                    "s3://bucket",
		"s3://bucket/":                   "s3://bucket",
		"S3://Bucket/Folder/x/":          "s3://Bucket/Folder/x",
		"gs://b/k%20k":                   "gs://b/k%20k",
		"s3+ddb://b/k/?ddbTableName=t":   "s3+ddb://b/k?ddbTableName=t",
		"abfss://container@account/dir/": "abfss://container@account/dir",
		"./s3:/bucket":                   filepath.Join(here, "s3:/bucket"),
		"a:b":                            filepath.Join(here, "a:b"),
	} {
		got, err := store.CleanDataDir(given)
		require.NoError(t, err, given)
		require.Equal(t, want, got, given)
		again, err := store.CleanDataDir(got)
		require.NoError(t, err)
		require.Equal(t, got, again, "cleaning again changes nothing")
	}
}

func TestADataDirectoryThatCannotBeMeantIsRefused(t *testing.T) {
	for _, given := range []string{
		"", "  ", "s3://", "s3:///key", "file://host/data", "file://", "file:///data?x=1",
		"s3://bucket/a/../b", "s3://bucket/./b", "/data\nx", "s3://key:secret@bucket/x",
		"http://foo", "https://bucket.example/x", "ftp://x/y", "memory://x", "s3a://bucket", "s3:/bucket", "gs:", "file:/data",
	} {
		_, err := store.CleanDataDir(given)
		require.Error(t, err, given)
		require.NotContains(t, err.Error(), "secret")
	}
}

func TestAURIOfARegistryIsFoundFromTheDataDirectory(t *testing.T) {
	for _, c := range []struct{ dir, uri, want string }{
		{"/data", "x.rollout.lance", "/data/x.rollout.lance"},
		{"/data", "./sub/x.lance/", "/data/sub/x.lance"},
		{"/data", "../other/x.lance", "/other/x.lance"},
		{"/data", "/abs/x.lance", "/abs/x.lance"},
		{"/data", "s3://b/x.lance", "s3://b/x.lance"},
		{"s3://b", "x.lance", "s3://b/x.lance"},
		{"s3://b/dir", "sub/./x.lance/", "s3://b/dir/sub/x.lance"},
		{"s3://b/dir", "file:///abs/x.lance", "/abs/x.lance"},
		{"s3+ddb://b/dir?ddbTableName=t", "x.lance", "s3+ddb://b/dir/x.lance?ddbTableName=t"},
	} {
		got, err := store.Locate(c.dir, c.uri)
		require.NoError(t, err, c.uri)
		require.Equal(t, c.want, got)
	}
	for _, c := range []struct{ dir, uri string }{{"/data", ""}, {"s3://b/dir", "../x"}, {"s3://b/dir", "a/../../x"}, {"/data", "s3:///x"}} {
		_, err := store.Locate(c.dir, c.uri)
		require.Error(t, err, c.uri)
	}
}
