// Finds a symbol's bytes in an embedded code object, which is an ordinary 64-bit ELF file.
#include <elf.h>
#include <string.h>

#include "kernelwright/hip/common/runtime.h"

namespace {

// The section as an array, or null if they are not all inside the image.
template <class Entry>
const Entry* section_entries(const kw_hip_code& code, const Elf64_Shdr& section) {
  const uint64_t bytes = static_cast<uint64_t>(code.image_end - code.image);
  if (section.sh_offset > bytes || section.sh_size > bytes - section.sh_offset) return nullptr;
  return reinterpret_cast<const Entry*>(code.image + section.sh_offset);
}

const Elf64_Shdr* section_table(const kw_hip_code& code, uint32_t* count) {
  const uint64_t bytes = static_cast<uint64_t>(code.image_end - code.image);
  const auto* header = reinterpret_cast<const Elf64_Ehdr*>(code.image);
  if (bytes < sizeof *header || memcmp(header->e_ident, ELFMAG, SELFMAG) != 0) return nullptr;
  *count = header->e_shnum;
  if (header->e_shoff > bytes || *count > (bytes - header->e_shoff) / sizeof(Elf64_Shdr)) return nullptr;
  return reinterpret_cast<const Elf64_Shdr*>(code.image + header->e_shoff);
}

const Elf64_Sym* find_symbol(const kw_hip_code& code, const Elf64_Shdr* sections, uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) {
    if (sections[i].sh_type != SHT_DYNSYM || sections[i].sh_link >= count) continue;
    const auto* symbols = section_entries<Elf64_Sym>(code, sections[i]);
    const Elf64_Shdr& names = sections[sections[i].sh_link];
    const auto* text = section_entries<char>(code, names);
    if (!symbols || !text) return nullptr;
    const size_t length = strlen(code.facts) + 1;
    for (uint64_t s = 0; s < sections[i].sh_size / sizeof *symbols; ++s) {
      const uint64_t at = symbols[s].st_name;
      if (at + length <= names.sh_size && memcmp(text + at, code.facts, length) == 0) return &symbols[s];
    }
  }
  return nullptr;
}

}  // namespace

int kw_hip_read_facts(const kw_hip_code* code, void* facts, size_t bytes) {
  uint32_t count = 0;
  const Elf64_Shdr* sections = section_table(*code, &count);
  const Elf64_Sym* symbol = sections ? find_symbol(*code, sections, count) : nullptr;
  if (!symbol || symbol->st_shndx >= count || symbol->st_size != bytes) return 0;
  const Elf64_Shdr& section = sections[symbol->st_shndx];
  const auto* entries = section_entries<unsigned char>(*code, section);
  const uint64_t at = symbol->st_value - section.sh_addr;
  if (!entries || at > section.sh_size || bytes > section.sh_size - at) return 0;
  memcpy(facts, entries + at, bytes);
  return 1;
}
