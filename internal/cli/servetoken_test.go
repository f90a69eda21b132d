package cli

import (
	"strings"
	"testing"

	"github.com/tenonhq/tenon"
)

// TestREL_placeholderToken: the placeholder of an example is no token.
func TestREL_placeholderToken(t *testing.T) {
	err := checkTokens(tenon.NewSecret("replace-me-with-32-characters-or-more"), nil)
	if err == nil || !strings.Contains(err.Error(), "serve.auth.secret: the token is the placeholder of an example") {
		t.Errorf("%v", err)
	}
}
