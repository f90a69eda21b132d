package main

import (
	"context"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/internal/wholefile"
)

// A configuration that was found and not named with -c may come with a cloned
// repository. What it would start or call is shown once, and a person agrees
// to it; the agreement is remembered for that file and exactly that command or
// address. Who names the file, agrees by that.

// shellLine shows a command as it would be typed.
func shellLine(command []string) string {
	words := make([]string, len(command))
	for i, w := range command {
		words[i] = w
		if w == "" || strings.ContainsAny(w, " \t\n'\"\\$`*?;&|<>(){}[]#~!") {
			words[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
	}
	return strings.Join(words, " ")
}

// consent asks about what was not agreed to before. Errors: denied, waiting
// where there is nobody to ask.
func (a *app) consent(ctx context.Context, cfg *config.Config) error {
	if err := a.consentTo(ctx, cfg, func(w wish) bool { return !strings.HasPrefix(w.path, "registry") }); err != nil {
		return err
	}
	// A table is data, whoever names it: its commands are asked about in any case.
	commands := cfg.TableCommands()
	for _, server := range slices.Sorted(maps.Keys(commands)) {
		if err := a.agreeCommand(ctx, cfg.TableOf(server), commands[server], false); err != nil {
			return err
		}
	}
	return nil
}

// consentToModels is consent to what reaches models, and gets their keys, and to where
// traces go.
func (a *app) consentToModels(ctx context.Context, cfg *config.Config) error {
	return a.consentTo(ctx, cfg, func(w wish) bool {
		return strings.HasPrefix(w.path, "models.") || strings.HasPrefix(w.path, "secrets.") || w.path == "telemetry.otlp"
	})
}

// consentTo is consent to a part of what a configuration would do.
func (a *app) consentTo(ctx context.Context, cfg *config.Config, part func(wish) bool) error {
	if !cfg.Found {
		return nil
	}
	given := a.readConsent()
	open := slices.DeleteFunc(wishes(cfg), func(w wish) bool { return given[w.key] || !part(w) })
	if len(open) == 0 {
		return nil
	}
	if !a.canAsk() {
		var texts []string
		for _, w := range open {
			texts = append(texts, safeLine(w.text))
		}
		// A line each: a command may end with a point.
		return tenon.Errorf(tenon.CodeWaiting, "%s was found, not named, and nobody has agreed yet to what it would do:\n  %s\nLook at it, then name it with -c %s",
			cfg.File, strings.Join(texts, "\n  "), cfg.File)
	}
	a.note("%s was found here and is used for the first time. It would", cfg.File)
	for _, w := range open {
		a.note("  %s", safeLine(w.text))
	}
	for {
		answer, err := a.ask(ctx, "Agree? [y]es / [n]o: ")
		if err != nil {
			return tenon.Errorf(tenon.CodeCancelled, "interrupted")
		}
		switch strings.ToLower(answer) {
		case "y", "yes":
			return a.writeConsent(open)
		case "n", "no":
			return tenon.Errorf(tenon.CodeDenied, "%s is not used: nobody agreed to what it would start", cfg.File)
		}
	}
}

// agree records the consent to everything in a file that was just written.
func (a *app) agree(ctx context.Context, file string) error {
	o := a.configOptions()
	o.File = file
	cfg, err := config.Load(ctx, o)
	if err != nil {
		return err
	}
	return a.writeConsent(wishes(cfg))
}

// consentFile lies in the user's state folder, outside of any repository.
func (a *app) consentFile() string {
	if dir, ok := a.env("XDG_STATE_HOME"); ok {
		return filepath.Join(dir, "tenon", "consent.json")
	}
	if dir, ok := a.env("HOME"); ok {
		return filepath.Join(dir, ".local", "state", "tenon", "consent.json")
	}
	return ""
}

// readConsent returns what was agreed to. A file that cannot be read is as one
// that is not there: the person is asked again.
func (a *app) readConsent() map[string]bool {
	given := map[string]bool{}
	if b, err := os.ReadFile(a.consentFile()); err == nil {
		_ = json.Unmarshal(b, &given)
	}
	return given
}

func (a *app) writeConsent(list []wish) error {
	file := a.consentFile()
	if file == "" || len(list) == 0 {
		return nil
	}
	given := a.readConsent()
	for _, w := range list {
		given[w.key] = true
	}
	b, err := json.MarshalIndent(given, "", "  ")
	if err == nil {
		err = os.MkdirAll(filepath.Dir(file), 0o700)
	}
	if err == nil {
		err = wholefile.Write(file, append(b, '\n'), 0o600)
	}
	if err != nil {
		return tenon.Errorf(tenon.CodeStore, "your consent cannot be kept in %s: %w", file, err)
	}
	return nil
}
