// The place in libjpeg-turbo where another Huffman decoder can be put in. It is declared in
// jpegint.h, which the distributions' development packages install; a build without it uses
// libjpeg-turbo's own decoder.
#pragma once

#include <cstdint>
#include <cstdio>
// jpeglib.h needs FILE declared before it.
#include <jpeglib.h>
#ifdef CONVOY_JPEG_INTERNALS
extern "C" {
#include <jpegint.h>
}
#endif

#include <utility>

namespace convoy::data {

using DecodeMcu = boolean (*)(j_decompress_ptr, JBLOCKROW*);

#ifdef CONVOY_JPEG_INTERNALS
// After jpeg_start_decompress(), for files with one scan.
inline void replace_huffman(jpeg_decompress_struct& jpeg, DecodeMcu decode) {
  jpeg.entropy->decode_mcu = decode;
}
// The first and the last column of MCUs that is transformed.
inline std::pair<std::int64_t, std::int64_t> needed_columns(const jpeg_decompress_struct& jpeg) {
  return {jpeg.master->first_iMCU_col, jpeg.master->last_iMCU_col};
}
inline constexpr bool kCanReplaceHuffman = true;
#else
inline void replace_huffman(jpeg_decompress_struct&, DecodeMcu) {}
inline std::pair<std::int64_t, std::int64_t> needed_columns(const jpeg_decompress_struct&) { return {}; }
inline constexpr bool kCanReplaceHuffman = false;
#endif

}  // namespace convoy::data
