package cli

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/internal/privatefile"
	"github.com/tenonhq/tenon/internal/wholefile"
)

// minToken is the length of the shortest valid token, in bytes. Shorter ones can be guessed.
const minToken = 16

// checkTokens refuses short tokens, placeholders, and one token for two principals.
func checkTokens(own tenon.Secret, others map[tenon.Principal]tenon.Secret) error {
	seen := map[string]string{}
	all := map[string]tenon.Secret{"serve.auth.secret": own}
	for who, t := range others {
		all["serve.auth.tokens."+string(who)] = t
	}
	for where, t := range all {
		if len(t.Reveal()) < minToken {
			return tenon.Errorf(tenon.CodeConfig, "%s: the token has less than %d bytes, so it could be guessed; "+
				"write a longer one", where, minToken)
		}
		if strings.HasPrefix(t.Reveal(), "replace-me") { // of an example, so everybody knows it
			return tenon.Errorf(tenon.CodeConfig, "%s: the token is the placeholder of an example; make one of your "+
				"own: openssl rand -hex 32", where)
		}
		if other, ok := seen[t.Reveal()]; ok {
			return tenon.Errorf(tenon.CodeConfig, "%s and %s are the same token", min(where, other), max(where, other))
		}
		seen[t.Reveal()] = where
	}
	return nil
}

// tokenPath is the path of the local user's token.
func tokenPath(h *host.Host) string { return besideSocket(h, ".token") }

// besideSocket returns the path of a file next to the socket of tenon serve: serve.token, or serve.url with the
// address. It is "" if the store has no folder.
func besideSocket(h *host.Host, ext string) string {
	if s := h.Service().Info().Socket; s != "" {
		return strings.TrimSuffix(s, ".sock") + ext
	}
	return ""
}

// maxTokenFile bounds the file of a token, in bytes.
const maxTokenFile = 64 << 10

// ownToken reads the local user's token, or makes one. Errors: invalid (no place), config
// (other users can read or replace the file), store (the file cannot be read).
func ownToken(path string) (tenon.Secret, error) {
	if path == "" {
		return tenon.Secret{}, tenon.Errorf(tenon.CodeInvalid, "there is no place for the token of tenon serve: "+
			"name one with --token-file")
	}
	b, err := privatefile.Read(path, maxTokenFile)
	var refused *privatefile.Refused
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return newToken(path)
	case errors.As(err, &refused):
		return tenon.Secret{}, tenon.Errorf(tenon.CodeConfig, "the token of tenon serve is not used: %w; or remove "+
			"%s to have a new token made", err, path)
	case err != nil:
		return tenon.Secret{}, tenon.Errorf(tenon.CodeStore, "the token of tenon serve cannot be read: %w", err)
	}
	return tenon.NewSecret(strings.TrimSpace(string(b))), nil
}

// keptToken is ownToken for the file next to the store. A folder may come with a token that
// its author knows, so a token that this user's tenon did not make there is replaced.
func (a *app) keptToken(path string, log *slog.Logger) (tenon.Secret, error) {
	_, err := os.Lstat(path)
	planted := err == nil && !a.knowsToken(path)
	if planted {
		log.Warn("the token of tenon serve is replaced: this tenon did not make it, so somebody else may know it; "+
			"name a file of your own with --token-file", "token_file", path)
		if err := os.Remove(path); err != nil {
			return tenon.Secret{}, tenon.Errorf(tenon.CodeStore, "the token of tenon serve cannot be replaced: %w", err)
		}
	}
	token, err := ownToken(path)
	if err == nil && !a.knowsToken(path) {
		a.noteToken(path, token)
	}
	return token, err
}

// tokenNote returns the file, in the user's state folder, that records the token of a path. It returns "" if there is
// no such folder.
func (a *app) tokenNote(path string) string {
	dir := a.trustStore().Dir()
	if dir == "" {
		return ""
	}
	return filepath.Join(filepath.Dir(dir), "tokens", digestOf([]byte(realPath(path)))[:32])
}

// knowsToken reports whether this user's tenon made the token in a file. If there is no state folder, or if
// TENON_TRUST=all is set, it returns true for every token.
func (a *app) knowsToken(path string) bool {
	note := a.tokenNote(path)
	if v, _ := a.env("TENON_TRUST"); note == "" || v == "all" {
		return true
	}
	known, err := privatefile.Read(note, maxTokenFile)
	if err != nil {
		return false
	}
	b, err := privatefile.Read(path, maxTokenFile)
	var refused *privatefile.Refused
	if errors.As(err, &refused) {
		return true // ownToken refuses it and says why
	}
	return err == nil && string(known) == digestOf(b)
}

// noteToken records the token in a file. If that fails, the next start makes another token.
func (a *app) noteToken(path string, token tenon.Secret) {
	note := a.tokenNote(path)
	if err := os.MkdirAll(filepath.Dir(note), 0o700); err != nil {
		return
	}
	_ = wholefile.Write(note, []byte(digestOf([]byte(token.Reveal()+"\n"))), 0o600)
}

// newToken makes a token of 256 bits and stores it in a file that only the user can read.
func newToken(path string) (tenon.Secret, error) {
	var b [32]byte
	_, _ = rand.Read(b[:]) // never fails (crypto/rand)
	token := "tenon_" + base64.RawURLEncoding.EncodeToString(b[:])
	if err := writeNew(path, token+"\n"); err != nil {
		return tenon.Secret{}, tenon.Errorf(tenon.CodeStore, "the token of tenon serve cannot be kept: %w; name "+
			"another file with --token-file", err)
	}
	return tenon.NewSecret(token), nil
}

// writeNew writes a file that only the user can read and that does not exist yet. A symbolic
// link at the path is not followed.
func writeNew(path, text string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

// writeFresh is writeNew after the removal of an older file or link at the path. In a folder from someone else, a link
// could lead to a file of the user.
func writeFresh(path, text string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return writeNew(path, text)
}
