package servers

import (
	"strings"
	"testing"
)

// TestMasked checks that the login in a URL appears in no status and no error.
func TestMasked(t *testing.T) {
	for cfg, want := range map[*Config]string{
		{URL: "http://me:s3cret@127.0.0.1:1/x?token=s3cret"}:                              "http://***@127.0.0.1:1/x?token=***",
		{URL: "http://me:s3cret@127.0.0.1:99999/x?token=s3cret"}:                          "http://***@127.0.0.1:99999/x?token=***",
		{Command: "nope-tenon", Args: []string{"--url=http://me:s3cret@h/?token=s3cret"}}: "nope-tenon --url=http://***@h/?token=***",
	} {
		s := started(t, *cfg, Options{})
		_, err := s.Tools(t.Context())
		st := s.Status()
		if err == nil || st.Target != want || strings.Contains(err.Error()+st.Error.Error(), "s3cret") {
			t.Errorf("%s: %v", st.Target, err)
		}
	}
}
