package store

import (
	"errors"
	"fmt"
	"net/url"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Our names below a data directory. Experiments can't have them: see fleet.Reserved.
const (
	statsTable   = "_stats.rollout.lance"
	roundsTable  = "_rounds.lance"
	journalTable = "_journal.lance"
	ledgerTable  = "_retired.lance"
	samplesTable = "_samples.lance"
	ownFolder    = "_lancefleet"
)

// Schemes are matched as URLs write them; a single letter would be a drive.
var (
	scheme     = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]+://`)
	halfScheme = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]+:(/|$)`) // s3:/bucket
)

// storageSchemes are those that the native library can reach.
var storageSchemes = []string{"s3", "s3+ddb", "gs", "az", "abfss"}

// CleanDataDir turns what a person wrote into the one form in which a data
// directory is compared and joined: an absolute local path (file:// becomes one),
// or a URL such as s3://bucket/folder, without a trailing slash. A query (as
// s3+ddb:// needs it) is kept. Credentials in the URL are refused: they belong
// into the environment, and this string ends in logs and workflow histories.
func CleanDataDir(s string) (string, error) {
	text := strings.TrimSpace(s)
	clean, err := cleanURI(text)
	if err == nil && !scheme.MatchString(text) && halfScheme.MatchString(text) {
		err = errors.New("looks like a url with a slash missing; a folder of that name is ./" + text)
	}
	if err != nil {
		return "", fmt.Errorf("data directory %q: %w", redact(s), err)
	}
	if isLocal(clean) {
		return filepath.Abs(clean)
	}
	if name, _, _ := strings.Cut(clean, "://"); !slices.Contains(storageSchemes, name) {
		return "", fmt.Errorf("data directory %q: %s:// is no storage; a folder, file:// or %s:// is allowed", redact(s), name, strings.Join(storageSchemes, "://, "))
	}
	return clean, nil
}

// Locate resolves the uri that a registry names: absolute ones stand for
// themselves, relative ones lie below the data directory.
func Locate(dataDir, uri string) (string, error) {
	uri = strings.TrimSpace(uri)
	switch {
	case uri == "":
		return "", errors.New("uri is empty")
	case scheme.MatchString(uri) || filepath.IsAbs(uri):
		return cleanURI(uri)
	case isLocal(dataDir):
		return filepath.Join(dataDir, uri), nil
	}
	if below := path.Clean(uri); below == ".." || strings.HasPrefix(below, "../") {
		return "", fmt.Errorf("uri %q leaves the data directory", uri)
	}
	return join(dataDir, path.Clean(uri)), nil
}

// join appends elements to a cleaned data directory, before a query if it has one.
func join(dataDir string, elem ...string) string {
	below := path.Join(elem...)
	if isLocal(dataDir) {
		return filepath.Join(dataDir, filepath.FromSlash(below))
	}
	base, query, has := strings.Cut(dataDir, "?")
	joined := strings.TrimRight(base, "/") + "/" + below
	if has {
		joined += "?" + query
	}
	return joined
}

func isLocal(clean string) bool { return !scheme.MatchString(clean) }

func cleanURI(s string) (string, error) {
	if s == "" {
		return "", errors.New("is empty")
	}
	if strings.ContainsAny(s, "\x00\n\r") {
		return "", errors.New("has control characters")
	}
	if !scheme.MatchString(s) {
		return filepath.Clean(s), nil
	}
	name, rest, _ := strings.Cut(s, "://")
	if strings.EqualFold(name, "file") {
		return localPath(s)
	}
	return cleanURL(strings.ToLower(name), rest)
}

// localPath turns file:///a%20b into /a b, as Lance would.
func localPath(s string) (string, error) {
	u, err := url.Parse(s)
	if err != nil {
		return "", errors.New("is no file url")
	}
	if u.Host != "" && !strings.EqualFold(u.Host, "localhost") {
		return "", fmt.Errorf("file url names the host %q: write file:///%s/... or a path", u.Host, u.Host)
	}
	if u.Path == "" || u.RawQuery != "" {
		return "", errors.New("file url must hold an absolute path and nothing else")
	}
	return filepath.Clean(u.Path), nil
}

// cleanURL works on the text: an object key may hold what url.Parse would decode.
func cleanURL(name, rest string) (string, error) {
	rest, query, has := strings.Cut(rest, "?")
	bucket, key, _ := strings.Cut(rest, "/")
	// az://container@account is an address; a colon before the @ is a secret.
	if user, _, found := strings.Cut(bucket, "@"); found && strings.Contains(user, ":") {
		return "", errors.New("holds credentials: give them in the environment")
	}
	if bucket == "" && name != "memory" {
		return "", errors.New("names no bucket")
	}
	for part := range strings.SplitSeq(key, "/") {
		if part == ".." || part == "." {
			return "", fmt.Errorf("has %q in its path", part)
		}
	}
	clean := name + "://" + bucket
	if key = strings.Trim(key, "/"); key != "" {
		clean += "/" + key
	}
	if has && query != "" {
		clean += "?" + query
	}
	return clean, nil
}

// redact hides what stands before an @ in a URL's authority.
func redact(s string) string {
	name, rest, found := strings.Cut(s, "://")
	if !found {
		return s
	}
	authority, tail, _ := strings.Cut(rest, "/")
	if at := strings.LastIndex(authority, "@"); at >= 0 {
		return name + "://***" + authority[at:] + "/" + tail
	}
	return s
}
