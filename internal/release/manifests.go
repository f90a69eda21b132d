package main

import (
	"path/filepath"
	"strings"
	"text/template"
)

// managerFile is a file of a package manager that names archives of the release by address and checksum.
type managerFile struct{ path, text string }

// manifestData are the values of the templates.
type manifestData struct {
	Version, Date, Summary, Homepage, Licence string
	Quarantine                                bool
	archives                                  map[platform][2]string
}

// Archive returns the address of a platform's archive.
func (d manifestData) Archive(system, arch string) string {
	return d.archives[platform{system, arch}][0]
}

// Sum returns the SHA-256 of a platform's archive, in hexadecimal digits.
func (d manifestData) Sum(system, arch string) string { return d.archives[platform{system, arch}][1] }

// managerFiles are Homebrew's cask, Scoop's manifest, the three files of winget, and a Nix expression. A person copies
// each into the repository of its package manager: CONTRIBUTING.md.
//
// Sources: https://docs.brew.sh/Cask-Cookbook, https://github.com/ScoopInstaller/Scoop/wiki/App-Manifests,
// https://learn.microsoft.com/windows/package-manager/package/manifest (1.6.0), https://nixos.org/manual/nixpkgs.
var managerFiles = []managerFile{
	{"homebrew/Casks/tenon.rb", `cask "tenon" do
  version "{{.Version}}"

  on_macos do
    on_intel do
      url "{{.Archive "darwin" "amd64"}}"
      sha256 "{{.Sum "darwin" "amd64"}}"
    end
    on_arm do
      url "{{.Archive "darwin" "arm64"}}"
      sha256 "{{.Sum "darwin" "arm64"}}"
    end
  end
  on_linux do
    on_intel do
      url "{{.Archive "linux" "amd64"}}"
      sha256 "{{.Sum "linux" "amd64"}}"
    end
    on_arm do
      url "{{.Archive "linux" "arm64"}}"
      sha256 "{{.Sum "linux" "arm64"}}"
    end
  end

  name "tenon"
  desc "{{.Summary}}"
  homepage "{{.Homepage}}"

  binary "tenon"
  manpage "man/tenon.1.gz"
  bash_completion "completions/tenon.bash"
  zsh_completion "completions/_tenon"
  fish_completion "completions/tenon.fish"
{{- if .Quarantine}}

  # The binary is not notarized: macOS would refuse to start it.
  postflight do
    if OS.mac?
      system_command "/usr/bin/xattr", args: ["-dr", "com.apple.quarantine", "#{staged_path}/tenon"]
    end
  end
{{- end}}
end
`},
	{"scoop/tenon.json", `{
  "version": "{{.Version}}",
  "description": "{{.Summary}}",
  "homepage": "{{.Homepage}}",
  "license": "{{.Licence}}",
  "architecture": {
    "64bit": {
      "url": "{{.Archive "windows" "amd64"}}",
      "hash": "{{.Sum "windows" "amd64"}}"
    },
    "arm64": {
      "url": "{{.Archive "windows" "arm64"}}",
      "hash": "{{.Sum "windows" "arm64"}}"
    }
  },
  "bin": "tenon.exe"
}
`},
	{"winget/tenonhq.tenon.yaml", `PackageIdentifier: tenonhq.tenon
PackageVersion: {{.Version}}
DefaultLocale: en-US
ManifestType: version
ManifestVersion: 1.6.0
`},
	{"winget/tenonhq.tenon.locale.en-US.yaml", `PackageIdentifier: tenonhq.tenon
PackageVersion: {{.Version}}
PackageLocale: en-US
Publisher: tenon
PublisherUrl: https://github.com/tenonhq
PackageName: tenon
PackageUrl: {{.Homepage}}
License: {{.Licence}}
ShortDescription: "{{.Summary}}"
ManifestType: defaultLocale
ManifestVersion: 1.6.0
`},
	{"winget/tenonhq.tenon.installer.yaml", `PackageIdentifier: tenonhq.tenon
PackageVersion: {{.Version}}
InstallerType: zip
NestedInstallerType: portable
NestedInstallerFiles:
  - RelativeFilePath: tenon.exe
    PortableCommandAlias: tenon
ReleaseDate: {{.Date}}
Installers:
  - Architecture: x64
    InstallerUrl: {{.Archive "windows" "amd64"}}
    InstallerSha256: {{.Sum "windows" "amd64"}}
  - Architecture: arm64
    InstallerUrl: {{.Archive "windows" "arm64"}}
    InstallerSha256: {{.Sum "windows" "arm64"}}
ManifestType: installer
ManifestVersion: 1.6.0
`},
	{"nix/tenon.nix", `# nix-build -E '(import <nixpkgs> {}).callPackage ./tenon.nix {}'
{ lib, stdenvNoCC, fetchurl, installShellFiles }:

let
  archives = {
    x86_64-linux = {
      url = "{{.Archive "linux" "amd64"}}";
      sha256 = "{{.Sum "linux" "amd64"}}";
    };
    aarch64-linux = {
      url = "{{.Archive "linux" "arm64"}}";
      sha256 = "{{.Sum "linux" "arm64"}}";
    };
    x86_64-darwin = {
      url = "{{.Archive "darwin" "amd64"}}";
      sha256 = "{{.Sum "darwin" "amd64"}}";
    };
    aarch64-darwin = {
      url = "{{.Archive "darwin" "arm64"}}";
      sha256 = "{{.Sum "darwin" "arm64"}}";
    };
  };
in
stdenvNoCC.mkDerivation {
  pname = "tenon";
  version = "{{.Version}}";
  src = fetchurl archives.${stdenvNoCC.hostPlatform.system};
  sourceRoot = ".";
  nativeBuildInputs = [ installShellFiles ];
  dontBuild = true;
  dontStrip = true;
  installPhase = ''
    runHook preInstall
    install -Dm755 tenon $out/bin/tenon
    installManPage man/*.1.gz
    installShellCompletion --bash completions/tenon.bash --zsh completions/_tenon --fish completions/tenon.fish
    runHook postInstall
  '';
  meta = {
    description = "{{.Summary}}";
    homepage = "{{.Homepage}}";
    license = lib.licenses.asl20;
    mainProgram = "tenon";
    platforms = builtins.attrNames archives;
    sourceProvenance = [ lib.sourceTypes.binaryNativeCode ];
  };
}
`},
}

// manifests writes the manifests of a release of all platforms, whose archives and checksums are in its folder.
// notarized reports that Apple knows the binaries, so that the cask needs no hook.
func (p packaging) manifests(notarized bool) error {
	d := manifestData{Version: p.version, Date: p.made.Format("2006-01-02"), Summary: summary, Homepage: homepage,
		Licence: licence, Quarantine: !notarized, archives: map[platform][2]string{}}
	for _, pl := range platforms {
		name := archiveName(p.version, pl)
		sum, err := p.sumOf(name)
		if err != nil {
			return err
		}
		d.archives[pl] = [2]string{homepage + "/releases/download/v" + p.version + "/" + name, sum}
	}
	for _, m := range managerFiles {
		t, err := template.New(m.path).Parse(m.text)
		if err != nil {
			return err
		}
		var b strings.Builder
		if err := t.Execute(&b, d); err != nil {
			return err
		}
		to := filepath.Join(p.to, "manifests", filepath.FromSlash(m.path))
		if err := writeFile(to, []byte(b.String())); err != nil {
			return err
		}
	}
	return nil
}
