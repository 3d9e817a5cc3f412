# Instantiates templates of kernels for sm_90a, each in a source file of its own, so that they
# compile in parallel. Appends the generated files to sm90_sources.
macro(convoy_sm90_instance name)
  configure_file(${CMAKE_CURRENT_LIST_DIR}/sm90_instance.cu.in ${PROJECT_BINARY_DIR}/generated/sm90_${name}.cu @ONLY)
  list(APPEND sm90_sources ${PROJECT_BINARY_DIR}/generated/sm90_${name}.cu)
endmacro()

# Matrix products by wgmma. The arguments: element type, whether m is contiguous in A and n in B,
# and the fused operation.
function(convoy_sm90_product name arguments)
  set(what "Matrix products by wgmma, ${name}")
  set(header gemm/wgmma/sm90_launch.cuh)
  set(namespace gemm)
  set(definition "template void sm90_launch<${arguments}>(const Sm90Call&, cudaStream_t);")
  convoy_sm90_instance(product_${name})
  set(sm90_sources ${sm90_sources} PARENT_SCOPE)
endfunction()

# Convolutions through im2col maps.
function(convoy_sm90_convolution name header start)
  set(what "Convolutions through im2col maps, ${name}")
  set(header conv2d/im2col/${header})
  set(namespace conv)
  set(definition
      "void sm90_conv_${name}(const Sm90ConvCall& call, cudaStream_t stream) { ${start}(call, stream); }")
  convoy_sm90_instance(conv_${name})
  set(sm90_sources ${sm90_sources} PARENT_SCOPE)
endfunction()

# Depthwise convolutions with filters of `filter` x `filter`.
function(convoy_sm90_depthwise filter)
  set(what "Depthwise convolutions, ${filter}x${filter}")
  set(header conv2d/cuda/sm90_depthwise_diagonal.cuh)
  set(namespace conv::diagonal)
  set(definition "template void start<${filter}>(const Call&, bool, cudaStream_t);")
  convoy_sm90_instance(depthwise_${filter})
  set(sm90_sources ${sm90_sources} PARENT_SCOPE)
endfunction()

convoy_sm90_depthwise(3)
convoy_sm90_depthwise(5)
convoy_sm90_depthwise(7)
convoy_sm90_product(bf16_nn "Math::bf16, false, true, Extra::none")
convoy_sm90_product(bf16_nt "Math::bf16, false, false, Extra::none")
convoy_sm90_product(bf16_nt_sums "Math::bf16, false, false, Extra::sums")
convoy_sm90_product(bf16_tn "Math::bf16, true, true, Extra::none")
convoy_sm90_product(bf16_tt "Math::bf16, true, false, Extra::none")
convoy_sm90_product(tf32 "Math::tf32, false, false, Extra::none")

set(bf16 "gemm::Math::bf16")
set(tf32 "gemm::Math::tf32")
convoy_sm90_convolution(forward sm90_im2col.cuh "start_conv<${bf16}, false, false, WindowLoader>")
convoy_sm90_convolution(forward_tf32 sm90_im2col.cuh "start_conv<${tf32}, false, false, WindowLoader>")
convoy_sm90_convolution(forward_sums sm90_im2col.cuh
                        "start_conv<${bf16}, false, false, WindowLoader, gemm::Extra::sums>")
convoy_sm90_convolution(forward_affine sm90_im2col.cuh
                        "start_conv<${bf16}, false, false, WindowLoader, gemm::Extra::none, true>")
convoy_sm90_convolution(forward_affine_sums sm90_im2col.cuh
                        "start_conv<${bf16}, false, false, WindowLoader, gemm::Extra::sums, true>")
convoy_sm90_convolution(backward_weights_affine sm90_im2col.cuh
                        "start_conv<${bf16}, true, true, AffineGradientLoader, gemm::Extra::none, true>")
convoy_sm90_convolution(forward_sums_tf32 sm90_im2col.cuh
                        "start_conv<${tf32}, false, false, WindowLoader, gemm::Extra::sums>")
convoy_sm90_convolution(backward_data sm90_im2col.cuh "start_conv<${bf16}, false, true, WindowLoader>")
convoy_sm90_convolution(backward_data_mask sm90_im2col.cuh
                        "start_conv<${bf16}, false, true, WindowLoader, gemm::Extra::mask>")
convoy_sm90_convolution(backward_data_mask_tf32 sm90_im2col.cuh
                        "start_conv<${tf32}, false, false, WindowLoader, gemm::Extra::mask>")
convoy_sm90_convolution(backward_data_norm sm90_norm_store.cuh "start_conv_norm<${bf16}>")
convoy_sm90_convolution(backward_data_norm_tf32 sm90_norm_store.cuh "start_conv_norm<${tf32}>")
