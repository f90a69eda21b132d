package host

import (
	"os"
	"path/filepath"

	"github.com/tenonhq/tenon/internal/keyring"
	"github.com/tenonhq/tenon/servers/oauth"
)

// vaultDir returns the folder of sign-ins and of their key, or "" without a state folder. Sign-ins belong to a person
// and not to a project, so the folder is in the user's state folder.
func (c Config) vaultDir() string {
	if c.Home != "" {
		return filepath.Join(c.Home, "auth")
	}
	if state := c.stateDir(); state != "" {
		return filepath.Join(state, "auth")
	}
	return ""
}

// vault returns the vault of sign-ins, or nil without a state folder.
func (c Config) vault() *oauth.Vault {
	lookup := c.LookupEnv
	if lookup == nil {
		lookup = os.LookupEnv
	}
	dir := c.vaultDir()
	if dir == "" {
		return nil
	}
	if ring := keyring.Open(lookup); ring != nil {
		return oauth.NewVault(dir, ring) // only if set: a nil *Ring would not be a nil Keyring
	}
	return oauth.NewVault(dir, nil)
}
