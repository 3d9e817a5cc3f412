"""Spack recipe of Convoy, which builds the checkout that holds this file."""
import os

from spack.package import *

CHECKOUT = os.path.abspath(os.path.join(os.path.dirname(__file__), *[".."] * 5))


class Convoy(CMakePackage, CudaPackage):
    """Trains convolutional networks over many GPUs or CPUs with one native program."""

    git = "file://" + CHECKOUT

    version("main", branch="main")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("cmake@3.25:", type="build")
    depends_on("ninja", type="build")
    depends_on("mpi")
    depends_on("hdf5~mpi")
    depends_on("onednn")
    depends_on("cli11")
    depends_on("tomlplusplus")
    depends_on("fmt@9:10")  # the versions of Debian 12 and 13
    depends_on("spdlog")
    depends_on("nlohmann-json")
    depends_on("jpeg")
    depends_on("libpng")
    depends_on("zlib-api")
    depends_on("libarchive")
    depends_on("metis")
    depends_on("openssl")
    depends_on("onnx")
    depends_on("protobuf@:3.21")  # later ones need Abseil, which CMake's FindProtobuf does not link
    depends_on("googletest", type="test")
    depends_on("cuda@12.4:", when="+cuda")
    depends_on("nccl", when="+cuda")
    # NCCL is built for the GPUs that cuda_arch names. Convoy is always built for all that it
    # supports.
    for arch in CudaPackage.cuda_arch_values:
        depends_on(f"nccl cuda_arch={arch}", when=f"+cuda cuda_arch={arch}")

    generator("ninja")

    def cmake_args(self):
        args = [
            self.define_from_variant("CONVOY_CUDA", "cuda"),
            self.define("CONVOY_TESTS", self.run_tests),
        ]
        if self.spec.satisfies("+cuda"):
            nccl = self.spec["nccl"]
            args.append(self.define("NCCL_INCLUDE_DIR", nccl.prefix.include))
            args.append(self.define("NCCL_LIBRARY", nccl.libs[0]))
        return args
