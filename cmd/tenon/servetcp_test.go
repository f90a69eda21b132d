package main

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/tenonhq/tenon"
)

// TestOwnToken holds that the token of tenon serve is made once, long, and only for its
// owner's eyes, and which tokens are refused.
func TestOwnToken(t *testing.T) {
	path := filepath.Join(t.TempDir(), "serve.token")
	first, err := ownToken(path)
	if err != nil || len(first.Reveal()) < 40 {
		t.Fatalf("%d bytes: %v", len(first.Reveal()), err)
	}
	if again, err := ownToken(path); err != nil || again.Reveal() != first.Reveal() {
		t.Errorf("another token at the second start: %v", err)
	}
	if runtime.GOOS != "windows" {
		if st, err := os.Stat(path); err != nil || st.Mode().Perm() != 0o600 {
			t.Errorf("mode %v: %v", st.Mode(), err)
		}
		if err := os.Chmod(path, 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := ownToken(path); tenon.ErrorCode(err) != tenon.CodeConfig || !strings.Contains(err.Error(), "chmod 600") {
			t.Errorf("a token that others can read: %v", err)
		}
	}
	if _, err := ownToken(""); tenon.ErrorCode(err) != tenon.CodeInvalid {
		t.Errorf("no place: %v", err)
	}
	secret := tenon.NewSecret
	if err := checkTokens(first, map[tenon.Principal]tenon.Secret{"anna": secret("short")}); tenon.ErrorCode(err) != tenon.CodeConfig || !strings.Contains(err.Error(), "serve.auth.tokens.anna") {
		t.Errorf("a short token: %v", err)
	}
	same := secret("the-same-token-twice")
	if err := checkTokens(first, map[tenon.Principal]tenon.Secret{"anna": same, "bert": same}); tenon.ErrorCode(err) != tenon.CodeConfig || strings.Contains(err.Error(), "twice") {
		t.Errorf("two with one token: %v", err)
	}
	if err := checkTokens(first, map[tenon.Principal]tenon.Secret{"anna": same}); err != nil {
		t.Error(err)
	}
}
