package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// packaging contains the inputs and the output folder for packages of a registry.
type packaging struct {
	version string // 1.2.3, with or without v; pre-releases are 1.2.3-rc.1
	dist    string // folder that contains GOOS_GOARCH/tenon
	to      string // folder of the packages
	made    time.Time
	root    string // the checkout; if empty, the current folder
	texts   *deflated
	// licences are LICENSE and NOTICES.txt, which each package contains: the licences of what is in the binary want it.
	licences []entry
}

// The texts that all packages contain.
const (
	summary  = "An MCP host: agents that use the tools of any MCP server"
	homepage = "https://github.com/tenonhq/tenon"
	licence  = "Apache-2.0"
)

// entry is a file in a package.
type entry struct {
	name string
	text []byte
	mode int64
}

// plainVersion returns a semantic version without the v.
func plainVersion(v string) (string, error) {
	v = strings.TrimPrefix(v, "v")
	if !regexp.MustCompile(`^\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?$`).MatchString(v) {
		return "", fmt.Errorf("%q is not a semantic version such as 1.2.3 or 1.2.3-rc.1", v)
	}
	return v, nil
}

// binaries returns the binaries in dist by platform. It returns an error if there are none.
func (p packaging) binaries() (map[platform][]byte, error) {
	found := map[platform][]byte{}
	for _, pl := range platforms {
		text, err := os.ReadFile(filepath.Join(p.dist, pl.String(), pl.binary()))
		if os.IsNotExist(err) {
			continue
		} else if err != nil {
			return nil, err
		}
		found[pl] = text
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("%s has no GOOS_GOARCH/tenon", p.dist)
	}
	return found, nil
}

// launcher is bin/tenon.js. It runs the binary of the package for this platform. As far as Node allows, it behaves like
// the binary itself: it has the same streams, signals and exit status.
const launcher = `#!/usr/bin/env node
"use strict";
const { spawn } = require("node:child_process");
const { constants } = require("node:os");
const name = "@tenonhq/tenon-" + process.platform + "-" + process.arch;
const file = process.platform === "win32" ? "tenon.exe" : "tenon";
let binary;
try {
  binary = require.resolve(name + "/bin/" + file);
} catch {
  console.error("tenon: the package " + name + " is not installed. Either there is no tenon for this platform,\n" +
    "or npm ran with --omit=optional; then run: npm install " + name);
  process.exit(1);
}
const child = spawn(binary, process.argv.slice(2), { stdio: "inherit", windowsHide: true });
// The terminal sends Ctrl-C to tenon, too; other signals are passed on.
process.on("SIGINT", () => {});
for (const s of ["SIGTERM", "SIGHUP", "SIGQUIT"]) process.on(s, () => child.kill(s));
child.on("error", (err) => {
  console.error("tenon: " + binary + " cannot be started: " + err.message);
  process.exit(1);
});
child.on("exit", (code, signal) => process.exit(signal ? 128 + (constants.signals[signal] || 0) : code));
`

// npmNames maps Go's names of systems and processors to npm's names.
var npmNames = map[string]string{"darwin": "darwin", "linux": "linux", "windows": "win32", "amd64": "x64",
	"arm64": "arm64"}

// writeNPM writes tenon-VERSION.tgz, which depends on one package for each platform, and these packages. npm installs
// the package whose os and cpu fit.
func writeNPM(p packaging) error {
	version, err := plainVersion(p.version)
	if err != nil {
		return err
	}
	found, err := p.binaries()
	if err != nil {
		return err
	}
	optional := map[string]string{}
	for pl, binary := range found {
		system, cpu := npmNames[pl.os], npmNames[pl.arch]
		name := "@tenonhq/tenon-" + system + "-" + cpu
		optional[name] = version
		about := map[string]any{"name": name, "version": version, "description": "tenon for " + pl.String(),
			"license": licence, "homepage": homepage, "os": []string{system}, "cpu": []string{cpu},
			"repository": "github:tenonhq/tenon", "preferUnplugged": true}
		file := "tenonhq-tenon-" + system + "-" + cpu + "-" + version + ".tgz"
		if err := p.npmPackage(file, about, entry{"bin/" + pl.binary(), binary, 0o755}); err != nil {
			return err
		}
	}
	about := map[string]any{"name": "tenon", "version": version, "description": summary, "license": licence,
		"homepage": homepage, "repository": "github:tenonhq/tenon", "bin": map[string]string{"tenon": "bin/tenon.js"},
		"mcpName": mcpName, "engines": map[string]string{"node": ">=18"}, "optionalDependencies": optional,
		"keywords": []string{"mcp", "agent", "llm"}}
	readme := "# tenon\n\n" + summary + ".\n\n```sh\nnpx tenon demo\n```\n\nDocumentation: <" + homepage + ">\n"
	return p.npmPackage("tenon-"+version+".tgz", about, entry{"bin/tenon.js", []byte(launcher), 0o755},
		entry{"README.md", []byte(readme), 0o644})
}

func (p packaging) npmPackage(file string, about map[string]any, entries ...entry) error {
	text, err := json.MarshalIndent(about, "", "  ") // the keys of maps are sorted
	if err != nil {
		return err
	}
	entries = append(entries, entry{"package.json", append(text, '\n'), 0o644})
	packed, err := p.tarball("package/", append(entries, p.licences...))
	if err != nil {
		return err
	}
	return writeFile(filepath.Join(p.to, file), packed)
}
