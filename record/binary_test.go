package record

import (
	"encoding/json"
	"net/http"
	"testing"
)

// Test_MD10_BinaryBodies checks that a body that is not text survives a cassette unchanged.
func Test_MD10_BinaryBodies(t *testing.T) {
	for _, body := range []string{"\x00\x00\x00\x10\xff{}", "text", "{\"a\":1}"} {
		r := response(200, http.Header{"Content-Type": {"application/vnd.amazon.eventstream"}}, []byte(body))
		data, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		var back Response
		if err := json.Unmarshal(data, &back); err != nil {
			t.Fatal(err)
		}
		if got := string(back.bytes()); got != body {
			t.Errorf("%q became %q", body, got)
		}
	}
}
