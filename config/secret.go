package config

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/config/tree"
)

// ErrUnset is the cause of the error about a secret whose environment variable is not set. No other place can have its
// value.
var ErrUnset = errors.New("the variable is not set")

const (
	maxSecret      = 64 << 10
	commandTimeout = 30 * time.Second
)

// Resolve reads the secret of an entry of secrets, by its source. env: the variable, from the environment or else the
// .env files. file: its text without the last line break, or login:password if it is a JSON object with those keys.
// command: the first line of its output; it runs for at most 30 seconds, without a shell. The error has code
// not_found for an unknown name, and otherwise auth_required.
func (c *Config) Resolve(ctx context.Context, name string) (tenon.Secret, error) {
	return c.resolveFor(ctx, name, nil)
}

// resolveFor is Resolve for a name in a file. file is nil if a Go program uses the name.
func (c *Config) resolveFor(ctx context.Context, name string, file *tree.Source) (tenon.Secret, error) {
	if _, ok := c.secretFor(name, file); !ok {
		return tenon.Secret{}, noEntry("secret", name, names(c, "secrets", c.Secrets))
	}
	return c.resolve(ctx, SecretSource{name: name, from: file}, "secrets."+name)
}

func (c *Config) resolve(ctx context.Context, s SecretSource, path string) (tenon.Secret, error) {
	key := path
	if s.name != "" {
		name := s.name
		s, _ = c.secretFor(name, s.from)
		key = c.keyOf(name, s)
	}
	fail := func(err error, format string, args ...any) (tenon.Secret, error) {
		return tenon.Secret{}, &tenon.Error{Code: tenon.CodeAuth, Err: err,
			Message: fmt.Sprintf("%s (%s): ", path, c.Origin(path)) + fmt.Sprintf(format, args...)}
	}
	switch {
	case s.Env != "":
		v, ok := c.variableOf(s, s.Env)
		if !ok || v == "" {
			return fail(ErrUnset, "environment variable '%s' not found; set it", s.Env)
		}
		return tenon.NewSecret(v), nil
	case s.hasUnset():
		return fail(ErrUnset, "a variable of %s is not set here; set it, or run the command where it is set, "+
			"as in the service's unit", s.File)
	case s.File != "":
		b, err := readFile(s.File, maxSecret)
		if err != nil {
			return fail(err, "%s", reason(err))
		}
		v := fromFile(b)
		if v == "" {
			return fail(nil, "%s is empty", s.File)
		}
		return tenon.NewSecret(v), nil
	case len(s.Command) > 0:
		if err := c.checkCommand(key, false); err != nil {
			return tenon.Secret{}, err
		}
		v, err := c.run(ctx, s.Command)
		switch {
		case err != nil:
			return fail(err, "command '%s': %s", s.Command[0], err)
		case v == "":
			return fail(nil, "command '%s' printed nothing", s.Command[0])
		}
		return tenon.NewSecret(v), nil
	case s.Keyring != "" || s.Prompt != "":
		v, err := c.fromKeyring(s, key)
		switch {
		case err != nil:
			return fail(err, "the keyring cannot be read: %s", err)
		case v == "" && s.Prompt != "":
			return fail(nil, "'%s' has not been asked for yet; run tenon servers test on a terminal", s.Prompt)
		case v == "":
			return fail(nil, "the system's keyring has no entry %s", s.Keyring)
		}
		return tenon.NewSecret(v), nil
	}
	return fail(nil, "names no place to read a secret from")
}

// hasUnset reports whether the file contains a variable that is not set here; see [decoder.isUnset].
func (s SecretSource) hasUnset() bool { return strings.Contains(s.File, "${") }

// fromFile converts {"login": …, "password": …} to login:password. With a second_factor it returns the text
// unchanged, because the type of auth decides which member is used.
func fromFile(b []byte) string {
	b = bytes.TrimPrefix(b, []byte("\ufeff"))
	var pair struct {
		Login    *string `json:"login"`
		Password *string `json:"password"`
		Factor   *string `json:"second_factor"`
	}
	if json.Unmarshal(b, &pair) == nil && pair.Password != nil && pair.Factor == nil {
		if pair.Login == nil {
			return *pair.Password
		}
		return *pair.Login + ":" + *pair.Password
	}
	return strings.TrimRight(string(b), "\r\n")
}

func (c *Config) run(ctx context.Context, command []string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Dir, cmd.WaitDelay = c.Dir, time.Second
	var out, errOut capped
	cmd.Stdout, cmd.Stderr = &out, &errOut
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		if first, _, _ := strings.Cut(strings.TrimSpace(errOut.String()), "\n"); first != "" {
			return "", fmt.Errorf("%w: %s", err, first)
		}
		return "", err
	}
	first, _, _ := strings.Cut(out.String(), "\n")
	return strings.TrimRight(first, "\r"), nil
}

// capped keeps the first 64 KiB and discards the rest. The buffer is not embedded, because its ReadFrom would read
// without a limit.
type capped struct{ kept bytes.Buffer }

func (c *capped) Write(p []byte) (int, error) {
	if room := maxSecret - c.kept.Len(); room > 0 {
		c.kept.Write(p[:min(room, len(p))])
	}
	return len(p), nil
}

func (c *capped) String() string { return c.kept.String() }

// reason returns why a file cannot be read, without the name of the system call.
func reason(err error) string {
	var pe *fs.PathError
	switch {
	case errors.Is(err, fs.ErrNotExist) && errors.As(err, &pe):
		return "no file " + pe.Path
	case errors.As(err, &pe):
		return pe.Path + ": " + pe.Err.Error()
	}
	return err.Error()
}

// secretFile warns of a secret file that others can read. A missing file is not reported here, but when the secret is
// used.
func (k *checker) secretFile(s SecretSource, p string) {
	if s.File == "" || s.hasUnset() {
		return
	}
	if mode, wide := wideMode(s.File); wide {
		k.note(p+".file", "chmod 600 "+s.File, "others can read %s (mode %04o)", s.File, mode)
	}
}

// wideMode reports whether users other than the owner can access a file. Windows has no such mode bits.
func wideMode(path string) (fs.FileMode, bool) {
	st, err := os.Stat(path)
	if err != nil || !st.Mode().IsRegular() || runtime.GOOS == "windows" {
		return 0, false
	}
	return st.Mode().Perm(), st.Mode().Perm()&0o077 != 0
}

var _ io.Writer = (*capped)(nil)

// SecretFor returns the secret to which the entry at a path, such as tools.weather, refers by name. An entry of the
// user's file never gets a project's secret. The error has code not_found or auth_required.
func (c *Config) SecretFor(ctx context.Context, path, name string) (tenon.Secret, error) {
	file := c.sourceAt(path)
	if _, ok := c.secretFor(name, file); !ok {
		return tenon.Secret{}, tenon.Errorf(tenon.CodeNotFound, "there is no entry '%s' in secrets", name)
	}
	return c.resolveFor(ctx, name, file)
}

// HasSecret reports whether the entry at a path can refer to a secret of this name.
func (c *Config) HasSecret(path, name string) bool {
	_, ok := c.secretFor(name, c.sourceAt(path))
	return ok
}

// ReadSecrets returns the secrets of the configuration that can be read, whether or not an entry that is in use refers
// to them. The error is about the others, except for the entries of disabled servers. A variable that is not set is no
// error: nobody knows its value.
func (c *Config) ReadSecrets(ctx context.Context) ([]tenon.Secret, error) {
	return c.readSecrets(ctx, func(SecretSource) bool { return true })
}

// QuietSecrets returns the secrets of the configuration that can be read without a program and without a question.
func (c *Config) QuietSecrets(ctx context.Context) []tenon.Secret {
	values, _ := c.readSecrets(ctx, func(s SecretSource) bool { return len(s.Command) == 0 && s.Prompt == "" })
	return values
}

// readSecrets returns the secrets with the sources that are chosen; see [Config.ReadSecrets].
func (c *Config) readSecrets(ctx context.Context, chosen func(SecretSource) bool) ([]tenon.Secret, error) {
	var values []tenon.Secret
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(c.Secrets)) {
		if !chosen(c.Secrets[name]) {
			continue
		}
		v, err := c.Resolve(ctx, name)
		values, errs = append(values, v), append(errs, err)
	}
	for _, path := range slices.Sorted(maps.Keys(c.secrets)) {
		if !chosen(c.secrets[path]) {
			continue
		}
		v, err := c.resolve(ctx, c.secrets[path], path)
		values = append(values, v)
		if !c.isOfDisabled(path) {
			errs = append(errs, err)
		}
	}
	for _, t := range c.Serve.Auth.Tokens {
		values = append(values, t)
	}
	values = append(values, c.VariableSecrets()...)
	values = slices.DeleteFunc(values, func(v tenon.Secret) bool { return v == tenon.Secret{} })
	errs = slices.DeleteFunc(errs, func(err error) bool { return errors.Is(err, ErrUnset) })
	return values, errors.Join(errs...)
}

// isOfDisabled reports whether a path is within the entry of a disabled server.
func (c *Config) isOfDisabled(path string) bool {
	for name, s := range c.Servers {
		if !s.IsEnabled() && strings.HasPrefix(path, "servers."+name+".") {
			return true
		}
	}
	return false
}
