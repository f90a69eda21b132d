// Package keyring is the secret store of the operating system: the Keychain of
// macOS, the Credential Manager of Windows, the Secret Service of a Linux desktop.
//
// It stands beside the way through the house: whoever keeps a secret for a person
// (the sign-ins of servers/oauth) asks it for a place. It hides the one module that
// knows those stores, which it must be careful with: without a session bus that
// module would start one, so here a machine without a bus has no keyring, and a
// store that waits for a person to unlock it is not waited for without end.
//
// A machine without a keyring is nothing special: a server, a container, an ssh
// session. Callers then have a place of their own.
package keyring

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"time"

	"github.com/zalando/go-keyring"
)

// patience is how long a person may take to unlock the keyring.
const patience = 60 * time.Second

// Off is the value of TENON_KEYRING that switches the keyring off.
const Off = "off"

// Ring is the keyring. The zero value is that of the system.
type Ring struct{}

// Open returns the keyring of the system, nil where there is none or the
// variable TENON_KEYRING is off. It asks nothing of it.
func Open(lookup func(string) (string, bool)) *Ring {
	if v, _ := lookup("TENON_KEYRING"); v == Off {
		return nil
	}
	switch runtime.GOOS {
	case "darwin", "windows":
		return &Ring{}
	}
	if _, ok := lookup("DBUS_SESSION_BUS_ADDRESS"); ok {
		return &Ring{}
	}
	if dir, ok := lookup("XDG_RUNTIME_DIR"); ok && isThere(filepath.Join(dir, "bus")) || isThere("/run/user/"+strconv.Itoa(os.Getuid())+"/bus") {
		return &Ring{}
	}
	return nil
}

func isThere(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// Get returns a value, "" where there is none.
func (*Ring) Get(service, user string) (string, error) {
	return within(func() (string, error) {
		v, err := keyring.Get(service, user)
		if errors.Is(err, keyring.ErrNotFound) {
			return "", nil
		}
		return v, err
	})
}

// Set keeps a value.
func (*Ring) Set(service, user, value string) error {
	_, err := within(func() (string, error) { return "", keyring.Set(service, user, value) })
	return err
}

// Delete forgets a value; that there is none is no error.
func (*Ring) Delete(service, user string) error {
	_, err := within(func() (string, error) {
		if err := keyring.Delete(service, user); !errors.Is(err, keyring.ErrNotFound) {
			return "", err
		}
		return "", nil
	})
	return err
}

// within does not wait for ever. The stores cannot be told to give up, so that
// what waits for a person ends with that person, or with the process.
func within(f func() (string, error)) (string, error) {
	type result struct {
		value string
		err   error
	}
	done := make(chan result, 1)
	go func() {
		v, err := f()
		done <- result{v, err}
	}()
	select {
	case r := <-done:
		return r.value, r.err
	case <-time.After(patience):
		return "", fmt.Errorf("the keyring did not answer within %s; unlock it", patience)
	}
}
