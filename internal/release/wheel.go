package main

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
)

// wheelName is the name of our wheels. The name tenon on PyPI belongs to another project.
const wheelName = "tenon-mcp"

// wheelModule starts the program tenon. Clients start a package by its name: a client that reads server.json runs
// uvx tenon-mcp@VERSION gateway.
const wheelModule = `"""Starts the program tenon, which is in the same folder as this one."""
import os
import subprocess
import sys


def main():
    name = "tenon.exe" if os.name == "nt" else "tenon"
    words = [os.path.join(os.path.dirname(os.path.realpath(sys.argv[0])), name)] + sys.argv[1:]
    if os.name == "nt":
        sys.exit(subprocess.call(words))
    os.execv(words[0], words)
`

// wheelTags are the platform tags of wheels
// (https://packaging.python.org/specifications/platform-compatibility-tags/). The binary is static, so that it runs
// with glibc of any version and with musl. Go 1.26 supports macOS 12 and newer.
var wheelTags = map[platform]string{
	{"darwin", "amd64"}:  "macosx_12_0_x86_64",
	{"darwin", "arm64"}:  "macosx_12_0_arm64",
	{"linux", "amd64"}:   "manylinux_2_17_x86_64.manylinux2014_x86_64.musllinux_1_1_x86_64",
	{"linux", "arm64"}:   "manylinux_2_17_aarch64.manylinux2014_aarch64.musllinux_1_1_aarch64",
	{"windows", "amd64"}: "win_amd64",
	{"windows", "arm64"}: "win_arm64",
}

// pythonVersion returns a semantic version in the form of PEP 440, such as 1.2.3rc1 for 1.2.3-rc.1.
func pythonVersion(v string) (string, error) {
	v, err := plainVersion(v)
	if err != nil {
		return "", err
	}
	release, pre, found := strings.Cut(v, "-")
	if !found {
		return v, nil
	}
	m := regexp.MustCompile(`^(alpha|beta|rc|dev)\.?(\d+)$`).FindStringSubmatch(pre)
	if m == nil {
		return "", fmt.Errorf("PyPI has no version like %s: want -alpha.N, -beta.N, -rc.N or -dev.N", v)
	}
	word := map[string]string{"alpha": "a", "beta": "b", "rc": "rc", "dev": ".dev"}[m[1]]
	return release + word + m[2], nil
}

// writeWheels writes a wheel for each platform (https://packaging.python.org/specifications/binary-distribution-format/).
// Installers put the files below scripts into the environment's bin folder, and make the program of entry_points.txt.
// File names have an underscore for the hyphen of the name.
func writeWheels(p packaging) error {
	version, err := pythonVersion(p.version)
	if err != nil {
		return err
	}
	found, err := p.binaries()
	if err != nil {
		return err
	}
	for pl, binary := range found {
		var tags strings.Builder
		for tag := range strings.SplitSeq(wheelTags[pl], ".") {
			tags.WriteString("Tag: py3-none-" + tag + "\n")
		}
		about := "Metadata-Version: 2.4\nName: " + wheelName + "\nVersion: " + version + "\nSummary: " + summary +
			"\nHome-page: " + homepage + "\nLicense-Expression: " + licence + p.licenceFiles() +
			"\nRequires-Python: >=3.8\n" +
			"Keywords: mcp,agent,llm\nDescription-Content-Type: text/markdown\n\n# tenon\n\n" + summary +
			".\n\n    uvx --from " + wheelName + " tenon demo\n\nDocumentation: <" + homepage + ">\n\nmcp-name: " +
			mcpName + "\n"
		base := strings.ReplaceAll(wheelName, "-", "_")
		info := base + "-" + version + ".dist-info/"
		entries := []entry{
			{base + "-" + version + ".data/scripts/" + pl.binary(), binary, 0o755},
			{base + ".py", []byte(wheelModule), 0o644},
			{info + "entry_points.txt", []byte("[console_scripts]\n" + wheelName + " = " + base + ":main\n"), 0o644},
			{info + "METADATA", []byte(about), 0o644},
			{info + "WHEEL", []byte("Wheel-Version: 1.0\nGenerator: tenon\nRoot-Is-Purelib: false\n" + tags.String()),
				0o644},
		}
		for _, e := range p.licences {
			entries = append(entries, entry{info + "licenses/" + e.name, e.text, e.mode})
		}
		file := base + "-" + version + "-py3-none-" + wheelTags[pl] + ".whl"
		packed, err := p.wheel(info+"RECORD", entries)
		if err != nil {
			return err
		}
		if err := writeFile(filepath.Join(p.to, file), packed); err != nil {
			return err
		}
	}
	return nil
}

// licenceFiles returns the lines of METADATA that name the files of the folder licenses (PEP 639).
func (p packaging) licenceFiles() string {
	var lines strings.Builder
	for _, e := range p.licences {
		lines.WriteString("\nLicense-File: " + e.name)
	}
	return lines.String()
}

// wheel packs entries, sorted by name. The last entry is the record of their digests.
func (p packaging) wheel(record string, entries []entry) ([]byte, error) {
	entries = sorted(entries)
	var list strings.Builder
	for _, e := range entries {
		sum := sha256.Sum256(e.text)
		fmt.Fprintf(&list, "%s,sha256=%s,%d\n", e.name, base64.RawURLEncoding.EncodeToString(sum[:]), len(e.text))
	}
	list.WriteString(record + ",,\n")
	entries = append(entries, entry{record, []byte(list.String()), 0o644})
	return p.zipped(entries)
}
