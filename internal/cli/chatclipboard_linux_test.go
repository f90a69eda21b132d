package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tenonhq/tenon"
)

// tinyPicture is the beginning of a PNG file.
const tinyPicture = "\x89PNG\r\n\x1a\n and more"

// TestUX4_Clipboard checks what Ctrl-V inserts, with programs that stand in for those of the desktop.
func TestUX4_Clipboard(t *testing.T) {
	const png = `printf '\211PNG\r\n\032\n and more'`
	for name, c := range map[string]struct {
		env      string
		programs map[string]string // scripts by name
		code     tenon.Code
		says     string
	}{
		"wayland":     {"WAYLAND_DISPLAY", map[string]string{"wl-paste": `[ "$*" = "--no-newline --type image/png" ] && ` + png}, "", ""},
		"x11":         {"DISPLAY", map[string]string{"xclip": `[ "$2" = clipboard ] && ` + png}, "", ""},
		"hexadecimal": {"DISPLAY", map[string]string{"xclip": `printf '«data PNGf89504E470D0A1A0A20616E64206D6F7265»'`}, "", ""},
		"text only":   {"DISPLAY", map[string]string{"xclip": `echo "Error: target image/png not available" >&2; exit 1`}, tenon.CodeNotFound, "the clipboard has no picture"},
		"not a PNG":   {"DISPLAY", map[string]string{"xclip": `echo hello`}, tenon.CodeNotFound, "the clipboard has no picture"},
		"too large":   {"DISPLAY", map[string]string{"xclip": `exec cat /dev/zero`}, tenon.CodeTooLarge, "more than 20 MiB"},
		"no program":  {"WAYLAND_DISPLAY", nil, tenon.CodeNotFound, "install wl-clipboard, or write @FILE"},
		"no display":  {"", map[string]string{"xclip": png}, tenon.CodeNotFound, "over ssh"},
	} {
		t.Run(name, func(t *testing.T) {
			bin := t.TempDir()
			for file, script := range c.programs {
				if err := os.WriteFile(filepath.Join(bin, file), []byte("#!/bin/sh\nPATH=/usr/bin:/bin\n"+script+"\n"), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			t.Setenv("PATH", bin)
			clips := &clips{a: &app{lookupEnv: func(name string) (string, bool) {
				if name != c.env || name == "" {
					return "", false
				}
				return "1", true
			}}}
			defer clips.close()
			got, err := clips.take(t.Context())
			if c.code != "" {
				if tenon.ErrorCode(err) != c.code || !strings.Contains(err.Error(), c.says) {
					t.Errorf("%q %v", got, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			path := strings.TrimSuffix(strings.TrimPrefix(got, "@"), " ")
			if b, err := os.ReadFile(path); string(b) != tinyPicture || err != nil || !isPicture(path) {
				t.Errorf("%q has %q, %v", got, b, err)
			}
			clips.close()
			if _, err := os.Stat(path); !os.IsNotExist(err) {
				t.Errorf("the picture stays: %v", err)
			}
		})
	}
}
