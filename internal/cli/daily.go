package cli

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/internal/privatefile"
	"github.com/tenonhq/tenon/internal/wholefile"
)

// maxDaily bounds the warnings of one day that are remembered. Others are shown with every command.
const maxDaily = 500

// dailyWarnings is the file that remembers which warnings of [config.Error.Daily] were shown on a day.
type dailyWarnings struct {
	Day   string          `json:"day"`
	Shown map[string]bool `json:"shown"` // digests of file and warning that were shown
}

// dailyFile returns the path of the file, or "" if the user has no state folder.
func (a *app) dailyFile() string {
	dir := a.trustStore().Dir()
	if dir == "" {
		return ""
	}
	return filepath.Join(filepath.Dir(dir), "warnings.json")
}

// unseen returns the warnings that this command shows: all but the daily ones that an earlier command has shown today.
// A problem with the file of shown warnings only means that a warning is shown again.
func (a *app) unseen(cfg *config.Config) []config.Error {
	var daily []string
	for _, w := range cfg.Warnings {
		if w.Daily {
			daily = append(daily, w.Error())
		}
	}
	fresh := a.freshToday(cfg.Path, daily...)
	var list []config.Error
	for _, w := range cfg.Warnings {
		if !w.Daily || slices.Contains(fresh, w.Error()) {
			list = append(list, w)
		}
	}
	return list
}

// freshToday returns the texts about a file that no command has shown today, and remembers them.
func (a *app) freshToday(about string, texts ...string) (list []string) {
	if len(texts) == 0 {
		return nil
	}
	file := a.dailyFile()
	seen, added := readDaily(file, time.Now().Format(time.DateOnly)), false
	for _, text := range texts {
		sum := sha256.Sum256([]byte(about + "\x00" + text))
		key := hex.EncodeToString(sum[:16])
		if seen.Shown[key] {
			continue
		}
		list = append(list, text)
		if len(seen.Shown) < maxDaily {
			seen.Shown[key], added = true, true
		}
	}
	if added && file != "" {
		b, err := json.Marshal(seen)
		if err == nil {
			err = os.MkdirAll(filepath.Dir(file), 0o700)
		}
		if err == nil {
			_ = wholefile.Write(file, append(b, '\n'), 0o600) // then the next command shows the text again
		}
	}
	return list
}

// readDaily reads the warnings that were shown on a day.
func readDaily(file, day string) *dailyWarnings {
	d := &dailyWarnings{}
	if file != "" {
		b, err := privatefile.Read(file, 64*maxDaily)
		if err != nil || json.Unmarshal(b, d) != nil || d.Day != day || d.Shown == nil {
			*d = dailyWarnings{}
		}
	}
	if d.Shown == nil {
		d.Day, d.Shown = day, map[string]bool{}
	}
	return d
}
