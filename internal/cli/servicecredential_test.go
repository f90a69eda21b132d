package cli

import (
	"testing"

	"github.com/tenonhq/tenon/internal/service"
)

// TestREL_packagedCredentials: the refusal to replace a package's unit says how that unit gets a credential.
func TestREL_packagedCredentials(t *testing.T) {
	s := &service.Spec{Name: "tenon"}
	if got := packagedCredentials(s); got != "" {
		t.Errorf("without credentials: %q", got)
	}
	s.Credentials = []service.Credential{{Name: "openai", File: "/etc/tenon/openai.key"}, {Name: "b", File: "/b"}}
	const want = "; for --credential, run systemctl edit tenon.service, and write [Service] and below it " +
		"LoadCredential=openai:/etc/tenon/openai.key and LoadCredential=b:/b"
	if got := packagedCredentials(s); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
