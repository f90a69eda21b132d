package host

import (
	"cmp"
	"encoding/json"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/outbound"
	"github.com/tenonhq/tenon/internal/protect"
	"github.com/tenonhq/tenon/servers"
)

// protectedPaths returns tenon's files that tool calls must not reach: the configuration, as config names it, and the
// store with all files next to it. Folders of workflows and tables are left out, because tenon itself passes them to
// tools.
func (h *Host) protectedPaths() *protect.Paths {
	p := h.config.Protected()
	if p.LookupEnv == nil {
		p.LookupEnv = h.cfg.LookupEnv
	}
	if h.cfg.Home != "" { // the folder may contain other files
		p.Folders = append(p.Folders, filepath.Join(absolute(h.cfg.Home), "auth"))
	}
	if path := h.cfg.shared(); path != "" {
		path = absolute(path)
		dir := filepath.Dir(path)
		p.Families = append(p.Families, path, filepath.Join(dir, "serve"))
		p.Folders = append(p.Folders, filepath.Join(dir, "servers"))
		p.Except = append(p.Except, filepath.Join(dir, "workflows"), filepath.Join(dir, "tables"))
	}
	return protect.New(p)
}

// absolute returns a path as an absolute one.
func absolute(path string) string {
	if full, err := filepath.Abs(path); err == nil {
		return full
	}
	return path
}

// protectedBy returns the reason why a call is denied because an argument leads to a file of tenon, or "" if none
// does. The check is an obstacle for agents and no protection by itself: a changed file has no effect until a person
// accepts it.
func (h *Host) protectedBy(t *tenon.Tool, args json.RawMessage) string {
	if h.kinds[t.Server].noFiles {
		return ""
	}
	entry := h.config.Servers[t.Server]
	if !isLocal(entry) {
		return ""
	}
	path, _ := h.protected.JSON(args, h.startFolders(t.Server, entry)...)
	if path == "" {
		return ""
	}
	return "an argument leads to " + tenon.Visible(path) + ", which belongs to tenon: no tool reads or changes " +
		"tenon's configuration, its store or its state; ask the person who runs tenon to change it"
}

// maxFolders bounds the folders in which an argument's relative path may begin.
const maxFolders = 32

// startFolders returns the folders in which a relative path of a server may begin: the working folder of its process,
// its roots, and the folders in its command line, as server-filesystem accepts them. A folder need not exist yet.
func (h *Host) startFolders(name string, entry servers.Config) []string {
	if known, ok := h.starts.Load(name); ok {
		return known.([]string)
	}
	dir := cmp.Or(h.config.Dir, absolute("."))
	folders := []string{dir}
	if entry.Cwd != "" && entry.Cwd != dir {
		folders = append(folders, entry.Cwd)
	}
	for _, f := range slices.Concat(entry.Roots, entry.Args) {
		if strings.HasPrefix(f, "-") {
			continue
		}
		if !filepath.IsAbs(f) {
			f = filepath.Join(cmp.Or(entry.Cwd, dir), f)
		}
		if st, err := os.Stat(f); (err != nil || st.IsDir()) && !slices.Contains(folders, f) &&
			len(folders) < maxFolders {
			folders = append(folders, f)
		}
	}
	h.starts.Store(name, folders)
	return folders
}

// isLocal reports whether a server may reach files of this machine. This holds for processes, functions of the program,
// and addresses on this machine or in its network.
func isLocal(entry servers.Config) bool {
	if entry.URL == "" {
		return true
	}
	u, err := url.Parse(entry.URL)
	return err != nil || outbound.NamesPrivate(u)
}
