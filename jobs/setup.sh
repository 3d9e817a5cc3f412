# shellcheck shell=bash
# quickstart.sh and test.sh source this file. It installs missing packages on a Debian or Ubuntu
# machine. If the variable for_tests is "yes", these include packages that only the tests and
# check_style.sh use.
packages=(g++ cmake ninja-build ccache git curl ca-certificates openmpi-bin libopenmpi-dev libhdf5-dev libdnnl-dev
          libcli11-dev libtomlplusplus-dev libfmt-dev libspdlog-dev nlohmann-json3-dev libjpeg-dev libpng-dev zlib1g-dev libarchive-dev
          libmetis-dev libssl-dev libonnx-dev libprotobuf-dev libgtest-dev)
if [ "${for_tests:-no}" = yes ]; then
  packages+=(slurm-wlm munge iproute2 procps shellcheck python3-matplotlib python3-pil python3-h5py python3-torch
             python3-torchvision python3-onnx)
  # Install chromium only on Debian, because Ubuntu's package needs snapd to install a browser.
  ! grep -qx 'ID=debian' /etc/os-release || packages+=(chromium)
  packages+=(codespell clang-format clang-tidy)  # for check_style.sh
fi
missing=()
for package in "${packages[@]}"; do
  dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep 'ok installed' >/dev/null || missing+=("$package")
done
if [ ${#missing[@]} -gt 0 ]; then
  sudo=; [ "$(id -u)" -eq 0 ] || sudo=sudo
  echo "Installing ${missing[*]}"
  $sudo apt-get update -q
  $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "${missing[@]}"
fi
# Containers and CI run as root, which Open MPI refuses unless these variables allow it.
if [ "$(id -u)" -eq 0 ]; then export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1; fi
