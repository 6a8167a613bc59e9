package s3test_test

import (
	"net/http"
	"testing"

	"lancefleet/e2e/s3test"
)

func ask(t *testing.T, method, url string) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	if err := answer.Body.Close(); err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode
}

func TestEveryAnsweredRequestIsCountedByKind(t *testing.T) {
	s := s3test.Start(t)
	s.Bucket(t, "counted")
	s.Bucket(t, "other")
	before, err := s.Requests("")
	if err != nil {
		t.Fatal(err)
	}
	for range 40 {
		if status := ask(t, http.MethodHead, s.Endpoint+"/counted/some/key"); status != http.StatusForbidden {
			t.Fatalf("a request without credentials was answered %d", status)
		}
	}
	ask(t, http.MethodGet, s.Endpoint+"/counted?list-type=2&prefix=some")
	ask(t, http.MethodGet, s.Endpoint+"/other/key")
	counted, err := s.Requests("/counted")
	if err != nil {
		t.Fatal(err)
	}
	if counted.Head != 40 || counted.List != 1 || counted.Get != 0 || counted.Refused != 41 {
		t.Fatalf("counted %+v", counted)
	}
	all, err := s.Requests("")
	if err != nil {
		t.Fatal(err)
	}
	if since := all.Since(before); since.Get != 1 || since.Total() != 42 {
		t.Fatalf("all since the start: %+v", since)
	}
}

func TestWithoutTheProgramTheReasonIsSaid(t *testing.T) {
	t.Setenv(s3test.BinaryVariable, t.TempDir()+"/nothing")
	if _, err := s3test.Binary(); err == nil {
		t.Fatal("found a program that is not there")
	}
}

func TestAStoppedServerAnswersNothing(t *testing.T) {
	s := s3test.Start(t)
	s.Stop()
	s.Stop()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.Endpoint, nil)
	if err != nil {
		t.Fatal(err)
	}
	if answer, err := http.DefaultClient.Do(req); err == nil {
		_ = answer.Body.Close()
		t.Fatal("a stopped server answered")
	}
}
