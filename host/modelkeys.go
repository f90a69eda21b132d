package host

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/privatefile"
	"github.com/tenonhq/tenon/internal/wholefile"
	"github.com/tenonhq/tenon/model"
	"github.com/tenonhq/tenon/servers/oauth"
)

// ModelKeys are the API keys of model providers that a person gave tenon to keep: one encrypted file for each provider
// in the person's state folder. The key of the encryption is in the system's keyring, or else in a file that only the
// person can read. They belong to the person and not to a project. A kept key is used in place of the provider's
// variable, such as OPENAI_API_KEY, if the environment does not set it. The methods are safe for concurrent use, by any
// number of processes.
type ModelKeys struct {
	dir   string
	vault *oauth.Vault // nil without a state folder
}

// maxModelKey bounds a key, maxSealedKey its file. Both are in bytes.
const (
	maxModelKey  = 16 << 10
	maxSealedKey = 64 << 10
)

// KeysOf returns the kept keys of the person. It uses Home and LookupEnv of c, and reads nothing yet.
func KeysOf(c Config) *ModelKeys { return &ModelKeys{dir: c.vaultDir(), vault: c.vault()} }

// Variable returns the kept key of the provider whose variable has this name. ok is false if there is none. Errors:
// store, auth_required (the keyring cannot be used).
func (k *ModelKeys) Variable(name string) (key string, ok bool, err error) {
	for _, provider := range KeyedProviders() {
		if p, _ := model.Lookup(provider); p.KeyEnv == name && k.vault != nil {
			return k.get(provider)
		}
	}
	return "", false, nil
}

func (k *ModelKeys) get(provider string) (key string, ok bool, err error) {
	sealed, err := privatefile.Read(k.path(provider), maxSealedKey)
	if errors.Is(err, fs.ErrNotExist) {
		return "", false, nil
	}
	if err != nil {
		return "", false, tenon.Errorf(tenon.CodeStore, "the kept key of %s cannot be read: %w", provider, err)
	}
	plain, err := k.vault.Open(sealed, boundTo(provider))
	if err != nil {
		return "", false, tenon.Errorf(tenon.ErrorCode(err), "the kept key of %s: %w; give the key again with tenon "+
			"models login %s", provider, err, provider)
	}
	return string(plain), true, nil
}

// Has reports whether a key of a provider is kept. It reads no key.
func (k *ModelKeys) Has(provider string) bool {
	if k.vault == nil || !slices.Contains(KeyedProviders(), provider) {
		return false
	}
	_, err := os.Lstat(k.path(provider))
	return err == nil
}

// Check returns an error if no key of a provider can be kept. Error: not_found.
func (k *ModelKeys) Check(provider string) error {
	if !slices.Contains(KeyedProviders(), provider) {
		return tenon.Errorf(tenon.CodeNotFound, "there is no provider '%s' with a key: name one of %s",
			tenon.Visible(provider), strings.Join(KeyedProviders(), ", "))
	}
	return nil
}

// Set keeps the key of a provider in place of an earlier one. An empty key removes it. Errors: not_found (no provider
// with this name has a key), invalid (it cannot be a key), store, auth_required.
func (k *ModelKeys) Set(provider string, key tenon.Secret) error {
	if err := k.Check(provider); err != nil {
		return err
	}
	p, _ := model.Lookup(provider)
	text := strings.TrimSpace(key.Reveal())
	switch {
	case len(text) > maxModelKey || strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' }):
		return tenon.Errorf(tenon.CodeInvalid, "this is no key of %s: a key has only printable ASCII characters "+
			"without blanks, and at most %d", provider, maxModelKey)
	case k.vault == nil:
		return tenon.Errorf(tenon.CodeStore, "there is no folder to keep the key in: set HOME or XDG_STATE_HOME, or "+
			"set %s instead", p.KeyEnv)
	case text == "":
		if err := os.Remove(k.path(provider)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return tenon.Errorf(tenon.CodeStore, "the kept key of %s cannot be removed: %w", provider, err)
		}
		return nil
	}
	sealed, err := k.vault.Seal([]byte(text), boundTo(provider))
	if err != nil {
		return err
	}
	if err := wholefile.Write(k.path(provider), append(sealed, '\n'), 0o600); err != nil {
		return tenon.Errorf(tenon.CodeStore, "the key of %s cannot be kept: %w", provider, err)
	}
	return nil
}

func (k *ModelKeys) path(provider string) string {
	return filepath.Join(k.dir, "model-"+provider+".json")
}

// boundTo returns the name that a sealed key is bound to, so that its file cannot be used for another provider.
func boundTo(provider string) string { return "model key " + provider }

// KeyedProviders returns the names of the providers that have a key, in the order of their table.
func KeyedProviders() []string {
	return slices.DeleteFunc(model.ProviderNames(), func(name string) bool {
		p, _ := model.Lookup(name)
		return p.KeyEnv == ""
	})
}
