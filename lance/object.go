package lance

import (
	"context"
)

// Object is a small object with its content.
type Object struct {
	Body []byte
	ETag string
	Time int64 // last modified
}

// ObjectInfo is an object in a listing.
type ObjectInfo struct {
	URI  string `json:"uri"`
	Size int64  `json:"size"`
	Time int64  `json:"time"` // last modified
	ETag string `json:"etag"`
}

// Get reads an object. One that does not exist is [ErrGone].
func (r *Reader) Get(ctx context.Context, uri string) (Object, error) {
	const op = "get"
	if err := checkURI(op, uri); err != nil {
		return Object{}, err
	}
	var object Object
	err := r.call(ctx, op, uri, uriArgs{uri}, nil, func(js, body []byte) error {
		var head struct {
			ETag string `json:"etag"`
			Time int64  `json:"time"`
		}
		if err := decode(js, op, uri, &head); err != nil {
			return err
		}
		object = Object{Body: append([]byte{}, body...), ETag: head.ETag, Time: head.Time}
		return nil
	})
	return object, err
}

// List names the objects below a uri, at any depth; limit 0 = all. A place that
// does not exist has none.
func (r *Reader) List(ctx context.Context, uri string, limit int) ([]ObjectInfo, error) {
	const op = "list"
	if err := checkURI(op, uri); err != nil {
		return nil, err
	}
	if limit < 0 {
		return nil, &Error{Class: Invalid, Op: op, URI: uri, Message: "the limit must not be negative"}
	}
	args := struct {
		URI   string `json:"uri"`
		Limit int    `json:"limit,omitempty"`
	}{uri, limit}
	answer, err := ask[struct {
		Objects []ObjectInfo `json:"objects"`
	}](ctx, r, op, uri, args, nil)
	return answer.Objects, err
}

// ListDirs names the folders directly below a uri. On local disk a symbolic link
// to a folder counts as one.
func (r *Reader) ListDirs(ctx context.Context, uri string) ([]string, error) {
	const op = "list_dirs"
	if err := checkURI(op, uri); err != nil {
		return nil, err
	}
	answer, err := ask[struct {
		Names []string `json:"names"`
	}](ctx, r, op, uri, uriArgs{uri}, nil)
	return answer.Names, err
}

// PutOptions of [Engine.Put].
type PutOptions struct {
	IfAbsent bool // fail with ErrExists when the object is there
}

// Put writes a small object in one piece and returns its e-tag.
func (e *Engine) Put(ctx context.Context, uri string, body []byte, o PutOptions) (string, error) {
	const op = "put"
	if err := checkURI(op, uri); err != nil {
		return "", err
	}
	args := struct {
		URI      string `json:"uri"`
		IfAbsent bool   `json:"if_absent"`
	}{uri, o.IfAbsent}
	answer, err := ask[struct {
		ETag string `json:"etag"`
	}](ctx, e.Reader, op, uri, args, body)
	return answer.ETag, err
}

// Delete removes objects, never what lies below them. One that is not there is
// fine. It says how many it asked to be gone.
func (e *Engine) Delete(ctx context.Context, uris ...string) (int64, error) {
	const op = "delete"
	for _, uri := range uris {
		if err := checkURI(op, uri); err != nil {
			return 0, err
		}
	}
	if err := e.usable(op, ""); err != nil || len(uris) == 0 {
		return 0, err
	}
	args := struct {
		URIs []string `json:"uris"`
	}{uris}
	answer, err := ask[struct {
		Deleted int64 `json:"deleted"`
	}](ctx, e.Reader, op, about(uris), args, nil)
	return answer.Deleted, err
}

// about names the uri in an error when there is only one.
func about(uris []string) string {
	if len(uris) == 1 {
		return uris[0]
	}
	return ""
}
