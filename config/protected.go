package config

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/config/tree"
	"github.com/tenonhq/tenon/internal/protect"
	"github.com/tenonhq/tenon/servers"
)

// storeFolder is the name of the store's folder next to a configuration file.
const storeFolder = ".tenon"

// configFiles are the files that tenon reads in the folders of the user and of the administrator. Other files there
// are not protected: they may be the user's own, such as the program of a server, and servers of the user's file run
// in that folder.
var configFiles = []string{"config.yaml", ".env"}

// Protected returns the files to which servers get no access: the configuration of the project, of the user and of
// the administrator, whether or not the files exist; the stores; the state folder of the user. The caller may append
// to the lists, since they are copies.
func (c *Config) Protected() protect.Config {
	p := c.protected
	for _, list := range []*[]string{&p.Files, &p.Families, &p.Folders, &p.Names, &p.Except} {
		*list = slices.Clone(*list)
	}
	return p
}

// protectedBy returns the protected files if top is the project's file. top may be nil.
func (o Options) protectedBy(top *tree.Source) protect.Config {
	p := protect.Config{LookupEnv: o.LookupEnv}
	var above []string
	if o.Admin != "" {
		above = append(above, filepath.Dir(o.Admin))
		p.Files = append(p.Files, o.Admin) // in addition to the folder, because the file may have any name
	}
	if u := o.userFile(); u != "" {
		above = append(above, filepath.Dir(u))
	}
	for _, dir := range above {
		for _, name := range configFiles {
			p.Files = append(p.Files, filepath.Join(dir, name))
		}
	}
	if s := o.stateFolder(); s != "" {
		p.Folders = append(p.Folders, s)
	}
	if top.Path != "" {
		p.Files = append(p.Files, top.Path)
	}
	byName := true
	dirs := []string{top.Dir, o.Dir}
	for dir := o.Dir; isBelow(dir, top.Dir) && dir != top.Dir; dir = filepath.Dir(dir) {
		dirs = append(dirs, dir) // tenon would find a file here before the one in top.dir
	}
	slices.Sort(dirs)
	for _, dir := range slices.Compact(dirs) {
		if dir == "" {
			continue
		}
		for _, name := range ownNames {
			p.Files = append(p.Files, filepath.Join(dir, name))
		}
		own := top.Path != "" && slices.Contains(ownNames, filepath.Base(top.Path))
		if !own || filepath.Dir(top.Path) != dir { // it comes before the tenon.yaml of a folder above
			p.Files = append(p.Files, filepath.Join(dir, agentName))
		}
		if !own {
			for _, name := range foreignNames {
				p.Files = append(p.Files, filepath.Join(dir, filepath.FromSlash(name)))
			}
		}
		p.Folders = append(p.Folders, filepath.Join(dir, storeFolder))
		if slices.Contains(strings.Split(dir, string(filepath.Separator)), storeFolder) {
			byName = false // the project itself is in a folder with this name
		}
	}
	if byName {
		p.Names = []string{storeFolder}
	}
	return p
}

// isBelow reports whether a path is the folder or below it.
func isBelow(path, folder string) bool {
	rel, err := filepath.Rel(folder, path)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}

// stateFolder returns the folder of the user's state, whether or not it exists.
func (o Options) stateFolder() string {
	if dir, ok := o.LookupEnv("XDG_STATE_HOME"); ok && filepath.IsAbs(dir) {
		return filepath.Join(dir, "tenon")
	}
	if o.Home == "" {
		return ""
	}
	return filepath.Join(o.Home, ".local", "state", "tenon")
}

// guard returns the key of a server's entry that leads to a protected file, and that file. Both are "" if there is
// none.
func guard(p *protect.Paths, s servers.Config, dir string) (key, file string) {
	folders := []string{dir}
	if s.Cwd != "" {
		folders = []string{s.Cwd, dir}
	}
	at := func(k, hit string) bool {
		if hit != "" && key == "" {
			key, file = k, hit
		}
		return key != ""
	}
	for _, f := range [][2]string{{"command", s.Command}, {"cwd", s.Cwd}, {"env_file", s.EnvFile}} {
		if at(f[0], p.Value(f[1], folders...)) {
			return key, file
		}
	}
	for i, text := range s.Roots {
		if at(tree.Index("roots", i), p.Value(text, folders...)) {
			return key, file
		}
	}
	for i, text := range s.Args {
		if at(tree.Index("args", i), p.Find(text, folders...)) {
			return key, file
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Env)) {
		if at("env."+name, p.Find(s.Env[name], folders...)) {
			return key, file
		}
	}
	for _, who := range slices.Sorted(maps.Keys(s.Principals)) {
		for _, name := range slices.Sorted(maps.Keys(s.Principals[who].Env)) {
			if at("principals."+who+".env."+name, p.Find(s.Principals[who].Env[name], folders...)) {
				return key, file
			}
		}
	}
	return "", ""
}

// guarded reports an entry that would give a server access to tenon's own files.
func (k *checker) guarded(p string, s servers.Config) {
	if k.typed { // see GuardServer
		return
	}
	dir := k.c.Dir
	if n := k.c.node(p); n != nil {
		dir = n.Src.Dir
	}
	if key, file := guard(k.paths, s, dir); key != "" {
		k.bad(p+"."+key, "point it at another file or folder; a folder above it is allowed",
			"%s is tenon's own file, which no server gets", file)
	}
}

// GuardServer returns an error for a server that no file contains, if its command line, environment or folders lead
// to a file of [Config.Protected]. Errors: invalid.
func (c *Config) GuardServer(name string, s servers.Config) error {
	if key, file := guard(protect.New(c.protected), s, c.Dir); key != "" {
		return tenon.Errorf(tenon.CodeInvalid, "server '%s' is refused: %s: %s is tenon's own file, which no server "+
			"gets; point it at another file or folder",
			tenon.Visible(name), key, tenon.Visible(file))
	}
	return nil
}
