import { defineConfig } from 'vite';

/** One script and one sheet, beside the server that answers with them. */
export default defineConfig({
  root: import.meta.dirname,
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
  build: {
    outDir: '../dist/subpaths/dashboard/ui',
    emptyOutDir: true,
    target: 'es2022',
    modulePreload: false,
    reportCompressedSize: false,
    cssCodeSplit: false,
    // Of the packages that are in the script.
    license: { fileName: 'licenses.md' },
    rolldownOptions: {
      input: 'src/main.tsx',
      output: { entryFileNames: 'app.js', assetFileNames: 'app[extname]', codeSplitting: false },
    },
  },
});
