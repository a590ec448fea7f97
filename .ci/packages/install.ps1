# Installs tool-proxy @VERSION@ for this user, into ~/.local: irm @DOWNLOADS@/install.ps1 | iex
# $env:TOOL_PROXY_PREFIX names another folder, $env:TOOL_PROXY_DOWNLOADS another source. Nothing is installed
# unless the archive has the digest that this script contains. For Windows on x86-64, and for Linux.
$ErrorActionPreference = 'Stop'

$version = '@VERSION@'
$downloads = if ($env:TOOL_PROXY_DOWNLOADS) { $env:TOOL_PROXY_DOWNLOADS } else { '@DOWNLOADS@' }
# A digest and a platform in each line.
$digests = @'
@DIGESTS@
'@

function Find-Platform {
    if ($IsMacOS) { throw 'on macOS, run install.sh' }
    $architecture = [System.Runtime.InteropServices.RuntimeInformation]::OSArchitecture.ToString()
    switch ($architecture) {
        'X64' { if (-not $IsLinux) { return 'x86_64-pc-windows-gnu' }; $cpu = 'x86_64'; $loader = '/lib64/ld-linux-x86-64.so.2' }
        'Arm64' { if (-not $IsLinux) { throw 'there is no program for Windows on ARM64' }; $cpu = 'aarch64'; $loader = '/lib/ld-linux-aarch64.so.1' }
        default { throw "there is no program for $architecture" }
    }
    $libc = if (Test-Path $loader) { 'gnu' } else { 'musl' }
    "$cpu-unknown-linux-$libc"
}

function Install-ToolProxy {
    $platform = Find-Platform
    $line = $digests -split "`n" | Where-Object { $_.Trim().EndsWith(" $platform") }
    if (-not $line) { throw "there is no program for $platform" }
    $digest = ($line.Trim() -split ' ')[0]
    $prefix = if ($env:TOOL_PROXY_PREFIX) { $env:TOOL_PROXY_PREFIX } else { Join-Path $HOME '.local' }
    $folder = Join-Path ([System.IO.Path]::GetTempPath()) ([System.IO.Path]::GetRandomFileName())
    New-Item -ItemType Directory -Path $folder | Out-Null
    try {
        $name = "tool-proxy-$platform-v$version"
        $ending = if ($IsLinux) { 'tar.gz' } else { 'zip' }
        $archive = Join-Path $folder "archive.$ending"
        Invoke-WebRequest -UseBasicParsing -Uri "$downloads/$name.$ending" -OutFile $archive
        $found = (Get-FileHash -Algorithm SHA256 $archive).Hash.ToLowerInvariant()
        if ($found -ne $digest) {
            throw "the archive has the digest $found, and not $digest; nothing was installed"
        }
        if ($IsLinux) {
            tar -xzf $archive -C $folder
            if ($LASTEXITCODE -ne 0) { throw 'the archive cannot be unpacked' }
        } else {
            Expand-Archive -Path $archive -DestinationPath $folder
        }
        $program = if ($IsLinux) { 'tool-proxy' } else { 'tool-proxy.exe' }
        $programs = Join-Path $prefix 'bin'
        New-Item -ItemType Directory -Force -Path $programs | Out-Null
        # A running program of Windows cannot be replaced: stop the daemon first.
        Copy-Item -Force (Join-Path (Join-Path $folder $name) $program) (Join-Path $programs '.tool-proxy.new')
        Move-Item -Force (Join-Path $programs '.tool-proxy.new') (Join-Path $programs $program)
        Write-Output "installed $(Join-Path $programs $program)"
        Write-Output "next: $(Join-Path $programs $program) init"
    } finally {
        Remove-Item -Recurse -Force $folder
    }
}

Install-ToolProxy
