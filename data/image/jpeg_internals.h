// Replaces libjpeg-turbo's Huffman decoder by the one in jpeg_huffman.h. This needs libjpeg's
// internal header jpegint.h, which the development packages of distributions install. Without
// jpegint.h, libjpeg-turbo's decoder is used.
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
// Makes libjpeg call `decode` for each MCU instead of its own Huffman decoder. Call it after
// jpeg_start_decompress(), for a file with one scan.
inline void replace_huffman(jpeg_decompress_struct& jpeg, DecodeMcu decode) {
  jpeg.entropy->decode_mcu = decode;
}
// Returns the first and the last column of MCUs (minimum coded units) to which libjpeg applies the
// inverse transform.
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
