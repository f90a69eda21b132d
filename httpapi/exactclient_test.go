package httpapi_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/httpapi"
)

// TestAnswersAreExact checks that tenon's client refuses a response with two members for one field. Otherwise different
// clients could show and decide different things.
func TestAnswersAreExact(t *testing.T) {
	for _, tt := range []struct{ name, answer, want string }{
		{"SEC-F11_two states", `{"run":{"id":"run_1","state":"working","State":"completed"}}`, "has to be written"},
		{"SEC-F11_a state twice", `{"run":{"id":"run_1","state":"working","state":"completed"}}`, "there twice"},
		{"a newer tenon", `{"run":{"id":"run_1","state":"working","mood":1},"more":{"a":1,"a":2}}`, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(tt.answer)) }))
			defer s.Close()
			c, err := httpapi.NewRemote(s.URL, tenon.Secret{})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close() //nolint:errcheck // it returns nil
			got, err := c.Start(t.Context(), httpapi.StartRequest{Question: "x"}, "")
			if (err == nil) != (tt.want == "") || err != nil && (!strings.Contains(err.Error(), tt.want) || tenon.ErrorCode(err) != tenon.CodeProtocol) {
				t.Errorf("%+v, %v; want %q", got, err, tt.want)
			}
		})
	}
}
