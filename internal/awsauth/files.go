package awsauth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/tenonhq/tenon"
)

// sections contains the sections of the shared files by name: "profile NAME" and "sso-session NAME". Keys are in lower
// case.
type sections map[string]map[string]string

func (s sections) profile(name string) map[string]string { return s["profile "+name] }

// shared reads the shared files. Keys of the credentials file take precedence. A missing file counts as empty.
func (c *Chain) shared() (sections, error) {
	all := sections{}
	for _, f := range []struct{ env, name string }{
		{"AWS_CONFIG_FILE", "config"}, {"AWS_SHARED_CREDENTIALS_FILE", "credentials"},
	} {
		path := c.home(c.env(f.env))
		if path == "" {
			path = filepath.Join(c.cfg.Home, ".aws", f.name)
		}
		data, err := readFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		for name, keys := range parse(data, f.name == "credentials") {
			if all[name] == nil {
				all[name] = map[string]string{}
			}
			for k, v := range keys {
				all[name][k] = v
			}
		}
	}
	return all, nil
}

// parse reads a shared file. In the credentials file, section names are names of profiles. Like AWS's tools, it skips
// lines that are neither a section nor a key, and nested keys.
func parse(data []byte, credentials bool) sections {
	out := sections{}
	var keys map[string]string
	for line := range strings.Lines(string(data)) {
		text := strings.TrimSpace(line)
		switch {
		case text == "", text[0] == '#', text[0] == ';', line[0] == ' ', line[0] == '\t':
		case text[0] == '[':
			name, _, _ := strings.Cut(text[1:], "]")
			kind, rest, two := strings.Cut(strings.Join(strings.Fields(name), " "), " ")
			switch {
			case credentials:
				name = "profile " + strings.TrimSpace(name)
			case two:
				name = kind + " " + strings.Trim(rest, `"'`)
			case kind == "default":
				name = "profile default"
			}
			if out[name] == nil {
				out[name] = map[string]string{}
			}
			keys = out[name]
		default:
			k, v, ok := strings.Cut(text, "=")
			if !ok || keys == nil {
				continue
			}
			for _, mark := range []string{" #", " ;", "\t#", "\t;"} {
				v, _, _ = strings.Cut(v, mark)
			}
			keys[strings.ToLower(strings.TrimSpace(k))] = strings.TrimSpace(v)
		}
	}
	return out
}

// readFile reads a bounded file.
func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxAnswer+1))
	if err == nil && len(data) > maxAnswer {
		err = fmt.Errorf("%s is larger than %d KiB", path, maxAnswer>>10)
	}
	return data, err
}

// process runs a program that prints credentials (credential_process of a profile).
func (c *Chain) process(ctx context.Context, command string) (Credentials, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchTime)
	defer cancel()
	name, args := "/bin/sh", []string{"-c", command}
	if runtime.GOOS == "windows" {
		name, args = "cmd.exe", []string{"/C", command}
	}
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.WaitDelay = time.Second
	var out limited
	cmd.Stdout = &out
	if err := cmd.Run(); err != nil {
		return Credentials{}, fmt.Errorf("credential_process of the profile: %w", err)
	}
	var k struct {
		Version                                    int
		AccessKeyID, SecretAccessKey, SessionToken string
		Expiration                                 string
	}
	if err := json.Unmarshal(out.data, &k); err != nil || k.AccessKeyID == "" || k.Version != 1 {
		return Credentials{}, errors.New("credential_process of the profile printed no credentials of version 1")
	}
	return keys(k.AccessKeyID, k.SecretAccessKey, k.SessionToken, k.Expiration), nil
}

// limited keeps at most maxAnswer bytes.
type limited struct{ data []byte }

func (l *limited) Write(p []byte) (int, error) {
	if len(l.data)+len(p) > maxAnswer {
		return 0, errors.New("the output is too large")
	}
	l.data = append(l.data, p...)
	return len(p), nil
}

// keys returns temporary credentials. expires is a time in the form of RFC 3339; "" means never.
func keys(access, secret, token, expires string) Credentials {
	k := Credentials{AccessKey: access, Secret: tenon.NewSecret(secret), Token: tenon.NewSecret(token)}
	if t, err := time.Parse(time.RFC3339, expires); err == nil {
		k.Expires = t
	}
	return k
}
