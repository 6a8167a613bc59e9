package lance

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestClassOfFindsTheClassBehindAnyWrapping(t *testing.T) {
	for _, c := range []struct {
		err  error
		want Class
	}{
		{nil, ""},
		{errors.New("foreign"), Internal},
		{&Error{Class: Corrupt}, Corrupt},
		{fmt.Errorf("commit: %w", &Error{Class: Conflict}), Conflict},
		{fmt.Errorf("commit: %w", ErrConflict), Conflict},
		{errors.Join(errors.New("a"), ErrDenied), Denied},
		{fmt.Errorf("a: %w", context.Canceled), Cancelled},
		{context.DeadlineExceeded, Timeout},
	} {
		assert.Equal(t, c.want, ClassOf(c.err), "%v", c.err)
	}
}

func TestContextErrorsMatchTheirClassesOnly(t *testing.T) {
	assert.ErrorIs(t, ErrCancelled, context.Canceled)
	assert.ErrorIs(t, &Error{Class: Cancelled}, context.Canceled)
	assert.ErrorIs(t, &Error{Class: Timeout}, context.DeadlineExceeded)
	assert.NotErrorIs(t, &Error{Class: Timeout}, context.Canceled)
	assert.NotErrorIs(t, &Error{Class: Gone}, context.Canceled)
	assert.NotErrorIs(t, ErrGone, ErrConflict)
}

func TestMessagesReadAsASentence(t *testing.T) {
	for want, e := range map[string]Error{
		"commit snapshot s3://b/t: conflict: head is 4": {Conflict, "commit_snapshot", "s3://b/t", "head is 4"},
		"stats: closed": {Class: Closed, Op: "stats"},
		"gone":          {Class: Gone},
	} {
		assert.Equal(t, want, e.Error())
	}
}
