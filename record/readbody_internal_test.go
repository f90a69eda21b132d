package record

import (
	"io"
	"net/http"
	"testing"
)

// endless is a body without an end.
type endless struct{}

func (endless) Read(b []byte) (int, error) { return len(b), nil }

// TestLargeRequestIsSentWhole checks that a request above the limit of recordings is sent whole.
func TestLargeRequestIsSentWhole(t *testing.T) {
	for _, size := range []int64{10, maxBody, maxBody + 5} {
		req, err := http.NewRequest(http.MethodPost, "http://example.com/", io.LimitReader(endless{}, size))
		if err != nil {
			t.Fatal(err)
		}
		sent, recorded, err := readBody(req)
		if err != nil || int64(len(recorded)) != min(size, maxBody) {
			t.Fatalf("%d bytes are recorded of %d: %v", len(recorded), size, err)
		}
		if n, err := io.Copy(io.Discard, sent.Body); n != size || err != nil {
			t.Errorf("%d bytes are sent of %d: %v", n, size, err)
		}
		if err := sent.Body.Close(); err != nil {
			t.Error(err)
		}
	}
}
