package host

import (
	"os"
	"path/filepath"

	"github.com/tenonhq/tenon/internal/keyring"
	"github.com/tenonhq/tenon/servers/oauth"
)

// vault is where sign-ins to servers are kept: they belong to a person and not to
// a project, so it lies in the user's state folder. Nil: there is none.
func (c Config) vault() *oauth.Vault {
	lookup := c.LookupEnv
	if lookup == nil {
		lookup = os.LookupEnv
	}
	dir := ""
	switch state, _ := lookup("XDG_STATE_HOME"); {
	case c.Home != "":
		dir = filepath.Join(c.Home, "auth")
	case state != "":
		dir = filepath.Join(state, "tenon", "auth")
	default:
		home, _ := lookup("HOME")
		if home == "" {
			return nil
		}
		dir = filepath.Join(home, ".local", "state", "tenon", "auth")
	}
	if ring := keyring.Open(lookup); ring != nil {
		return oauth.NewVault(dir, ring) // not a nil *Ring, which is no nil Keyring
	}
	return oauth.NewVault(dir, nil)
}
