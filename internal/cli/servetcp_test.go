package cli

import (
	"context"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/config"
)

// TestOwnToken checks that the token of tenon serve is created once, is long, and is readable only by its owner. It
// also checks which tokens are refused.
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

// TestOwnTokenFile checks that tenon does not use a token file that other users can read or replace, and that it does
// not write through a link at its path.
func TestOwnTokenFile(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("there are no modes")
	}
	const token = "tenon_0123456789abcdef0123456789abcdef"
	tests := map[string]func(t *testing.T, dir string) string{
		"the group reads it":      func(t *testing.T, dir string) string { return tokenFile(t, dir, token, 0o640) },
		"others read it":          func(t *testing.T, dir string) string { return tokenFile(t, dir, token, 0o604) },
		"the group writes it":     func(t *testing.T, dir string) string { return tokenFile(t, dir, token, 0o620) },
		"a folder for all":        func(t *testing.T, dir string) string { return inOpenFolder(t, dir, token) },
		"a link to a wide file":   func(t *testing.T, dir string) string { return linkTo(t, dir, tokenFile(t, dir, token, 0o644)) },
		"a link into such folder": func(t *testing.T, dir string) string { return linkTo(t, dir, inOpenFolder(t, dir, token)) },
		"a link to nothing":       func(t *testing.T, dir string) string { return linkTo(t, dir, filepath.Join(dir, "none")) },
		"a folder":                func(_ *testing.T, dir string) string { return dir },
		"too much": func(t *testing.T, dir string) string {
			return tokenFile(t, dir, strings.Repeat("x", maxTokenFile+1), 0o600)
		},
	}
	for name, plant := range tests {
		t.Run("SEC-F3_"+name, func(t *testing.T) {
			dir := t.TempDir()
			if got, err := ownToken(plant(t, dir)); err == nil || !got.IsZero() {
				t.Errorf("the token is used: %v", err)
			}
			if _, err := os.Lstat(filepath.Join(dir, "none")); err == nil {
				t.Error("a file was written through the link")
			}
		})
	}
	dir := t.TempDir()
	for _, path := range []string{tokenFile(t, dir, token, 0o600), linkTo(t, dir, tokenFile(t, dir, token, 0o400))} {
		if got, err := ownToken(path); err != nil || got.Reveal() != token {
			t.Errorf("%s: %v", path, err)
		}
	}
	// serve.url replaces a link, and is not written into the link's target.
	victim := filepath.Join(dir, "victim")
	if err := os.WriteFile(victim, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "serve.url")
	if err := os.Symlink(victim, link); err != nil {
		t.Fatal(err)
	}
	if err := writeFresh(link, "http://127.0.0.1:1"); err != nil {
		t.Fatal(err)
	}
	if b, _ := os.ReadFile(victim); string(b) != "mine" {
		t.Errorf("SEC-F3: the link's target has %q", b)
	}
}

func tokenFile(t *testing.T, dir, text string, mode os.FileMode) string {
	t.Helper()
	path := filepath.Join(dir, "token")
	_ = os.Remove(path)
	if err := os.WriteFile(path, []byte(text+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
	return path
}

func inOpenFolder(t *testing.T, dir, text string) string {
	t.Helper()
	open := filepath.Join(dir, "open")
	if err := os.Mkdir(open, 0o700); err != nil {
		t.Fatal(err)
	}
	path := tokenFile(t, open, text, 0o600)
	if err := os.Chmod(open, 0o777); err != nil {
		t.Fatal(err)
	}
	return path
}

func linkTo(t *testing.T, dir, target string) string {
	t.Helper()
	link := filepath.Join(dir, "link")
	_ = os.Remove(link)
	if err := os.Symlink(target, link); err != nil {
		t.Fatal(err)
	}
	return link
}

// TestOpenListener checks that serve.auth.type none is refused with an address that other machines can reach. The
// address can come from a flag, from the file in any spelling, or from a file that is loaded later.
func TestOpenListener(t *testing.T) {
	load := func(yaml string) (*config.Config, error) {
		return config.Parse("tenon.yaml", []byte(yaml), config.Options{Dir: t.TempDir()})
	}
	open, err := load("serve: {auth: {type: none}}\n")
	if err != nil {
		t.Fatal(err)
	}
	a := &app{}
	for addr, loopback := range map[string]bool{
		"127.0.0.1:0": true, "127.8.9.1:0": true, "[::1]:0": true, "localhost:0": true, "[::ffff:127.0.0.1]:0": true,
		":0": false, "0.0.0.0:0": false, "[::]:0": false, "[::ffff:0.0.0.0]:0": false, "0:0": false, "[0:0:0:0:0:0:0:0]:0": false,
		"10.1.2.3:0": false, "[fe80::1%lo]:0": false, "localhost.:0": false, "127.1:0": false, "localhost.example.com:0": false,
		"*:0": false, "unix:/tmp/x": false, "/tmp/x.sock": false, "": false,
	} {
		t.Run("SEC-F3_flag_"+addr, func(t *testing.T) {
			if addr == "" {
				if config.IsLoopback(addr) {
					t.Error("an empty address is loopback")
				}
				return
			}
			l, err := a.listenTCP(context.Background(), &serveFlags{listen: addr}, open, slog.New(slog.DiscardHandler))
			if l != nil {
				_ = l.Close()
			}
			if !loopback && (l != nil || err == nil) {
				t.Errorf("listens on %v", l.Addr())
			}
			if loopback && err != nil && !strings.Contains(err.Error(), "cannot listen") { // no IPv6 here
				t.Error(err)
			}
		})
		if addr == "" || strings.HasPrefix(addr, "localhost:") {
			continue
		}
		t.Run("SEC-F3_file_"+addr, func(t *testing.T) {
			_, err := load("serve: {listen: \"" + addr + "\", auth: {type: none}}\n")
			if (err == nil) != loopback {
				t.Errorf("loaded: %v", err)
			}
		})
		t.Run("SEC-F3_later_"+addr, func(t *testing.T) {
			if err := checkOpen(open, addr); (err == nil) != loopback {
				t.Error(err)
			}
		})
	}
	// The address that is really listened on is checked, because a host name may resolve to any address.
	if err := checkOpen(open, (&net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 1}).String()); tenon.ErrorCode(err) != tenon.CodeConfig {
		t.Error(err)
	}
}
