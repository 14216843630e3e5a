import { defineConfig } from 'vite';

/** Builds one script and one style sheet, next to the server that serves them. */
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
    // The licenses of the packages that are in the script.
    license: { fileName: 'licenses.md' },
    rolldownOptions: {
      input: 'src/main.tsx',
      output: { entryFileNames: 'app.js', assetFileNames: 'app[extname]', codeSplitting: false },
    },
  },
});
